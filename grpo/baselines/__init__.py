"""What GRPO is compared with."""
