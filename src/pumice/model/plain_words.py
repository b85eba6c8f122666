"""Types of values in words that need no Python, and long lists of names by the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def first_names(names: Sequence[str], shown: int = 3, count: int | None = None) -> str:
    """Return the first names and how many more there are of ``count``, or without it of the names."""
    left = (len(names) if count is None else count) - shown
    return ", ".join(names[:shown]) + (f" and {left:,} more" if left > 0 else "")
