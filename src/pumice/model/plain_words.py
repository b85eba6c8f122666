"""Name types of values in words that need no Python."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

# In this order, because True is an int in Python.
_KINDS = (
    (NoneType, "nothing"),
    (bool, "true or false"),
    (int | float, "a number"),
    (str, "a text"),
    (list | tuple, "a list"),
    (Mapping, "a mapping"),
)


def kind_of(value: object) -> str:
    """Return what a value read from a file is, in the words of YAML."""
    return next((words for kind, words in _KINDS if isinstance(value, kind)), f"a {type(value).__name__}")
