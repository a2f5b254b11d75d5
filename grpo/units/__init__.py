"""GRPO where a unit is no token: a denoising step of a flow, or an action in an environment."""
