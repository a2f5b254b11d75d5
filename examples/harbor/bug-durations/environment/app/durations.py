UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


class BadDuration(ValueError):
    """A text is no duration."""


def seconds(text):
    """Return a duration in seconds."""
    return int(text[:-1]) * UNITS[text[-1]]
