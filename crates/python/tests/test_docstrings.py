"""Examples in docstrings do what they print."""

import doctest
import importlib
import pkgutil

import pytest

import simnel

MODULES = ["simnel", *(f"simnel.{module.name}" for module in pkgutil.iter_modules(simnel.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_print(name):
    if name == "simnel.gym":
        pytest.importorskip("gymnasium")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
