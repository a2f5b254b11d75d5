"""Reading replies: the one place in which text becomes thoughts, fences, markup, labels, words."""
