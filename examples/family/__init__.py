"""The GRPO family: one file is one system, its claim and its test. ``assay family list``."""
