"""The model: load it, and take log-probabilities of what it wrote."""
