"""Modules of version 0.1 under their former names."""

import importlib
import sys

import pytest

from assay.envs._moved import MOVED


@pytest.mark.parametrize("former", sorted(MOVED))
def test_a_module_is_found_under_its_former_name(former) -> None:
    sys.modules.pop(former, None)
    with pytest.warns(DeprecationWarning, match=f"{former} has moved: import {MOVED[former]}$"):
        module = importlib.import_module(former)
    assert module is importlib.import_module(MOVED[former])
    assert module.__spec__.name == MOVED[former]
