"""What several tests of the framework need."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def anew(hook: Callable[..., Any]) -> Any:
    """The same function in an object of its own, since a point marks the one that it is given."""
    assert isinstance(hook, FunctionType)
    twin = FunctionType(hook.__code__, hook.__globals__, hook.__name__, hook.__defaults__, hook.__closure__)
    twin.__annotations__, twin.__kwdefaults__ = hook.__annotations__, hook.__kwdefaults__
    return twin
