def page(items, number, size):
    """Return one page of a list; pages count from 1."""
    start = number * size
    return items[start : start + size - 1]
