import sys

import pytest

sys.path.insert(0, "/app")
from pages import page


def test_pages():
    letters = list("abcdefg")
    assert page(letters, 1, 3) == ["a", "b", "c"]
    assert page(letters, 2, 3) == ["d", "e", "f"]
    assert page(letters, 3, 3) == ["g"]
    assert page(letters, 4, 3) == []
    assert page([], 1, 10) == []


@pytest.mark.parametrize(("number", "size"), [(0, 3), (-1, 3), (1, 0)])
def test_refuses(number, size):
    with pytest.raises(ValueError):
        page([1, 2], number, size)
