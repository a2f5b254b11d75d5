"""The arithmetic: advantages and losses, pure functions of tensors."""
