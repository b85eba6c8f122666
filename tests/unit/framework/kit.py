"""What several tests of the framework need."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from msgspec.structs import replace

from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE


def anew(hook: Callable[..., Any]) -> Any:
    """The same function in an object of its own, since a point marks the one that it is given."""
    assert isinstance(hook, FunctionType)
    twin = FunctionType(hook.__code__, hook.__globals__, hook.__name__, hook.__defaults__, hook.__closure__)
    twin.__annotations__, twin.__kwdefaults__ = hook.__annotations__, hook.__kwdefaults__
    return twin


def answers_equally(target: Any, *methods: str) -> Any:
    """Return a plugin that is listed as answering equally for equal jobs, by these methods; as a whole if it is a
    function. Only built-in plugins are, by the table of their language."""
    spec = replace(getattr(target, PLUGIN_ATTRIBUTE), equal_answers=frozenset(methods or ("",)))
    setattr(target, PLUGIN_ATTRIBUTE, spec)
    return target
