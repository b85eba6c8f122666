"""Check a plugin's arguments: with every value in a policy file it works, or the value is refused when the file is
read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.plugin import Argument, PluginSpec
from pumice.testing.checks.breach import Breach

#: Values that a file may contain, by annotation of the parameter. Other annotations accept any value.
VALUES: Mapping[str, tuple[Any, ...]] = {
    "int": (0, -1, 1, 2**31, 10**18),
    "float": (0, -1.0, 1e-9, 3, 1e12),
    "bool": (True, False),
    "str": ("", "x", "1", "1h", "a, b", "ü"),
}
ANY: tuple[Any, ...] = (None, 0, -1.5, "x", [], [1, "x"], {}, {"x": 1})
WRONG: tuple[Any, ...] = ([1], {"x": 1})

OpenAttempt = Callable[[Mapping[str, Any]], None]  # a policy with these arguments, and a cluster under it


def check_arguments(spec: PluginSpec, read: OpenAttempt, live: OpenAttempt) -> None:
    """Check all values. ``read`` raises PolicyError for refused arguments, ``live`` Breach if a plugin fails with them.

    Raises: Breach.
    """
    for argument in spec.arguments.values():
        key = argument.name + "x" if argument.name.endswith("_") else argument.name
        for value in _wrong(argument):
            try:
                read({key: value})
            except PolicyError as error:
                _is_clear(spec, argument, value, error)
            else:
                raise _breach(spec, argument, value, "takes a value of a wrong type", _TYPE)
        for value in _values(argument):
            try:
                read({key: value})
            except PolicyError as error:
                _is_clear(spec, argument, value, error)
                continue
            try:
                live({key: value})
            except Breach as error:
                problem = f"cannot live with a value that a policy file may hold: {error.where}: {error.problem}"
                raise _breach(spec, argument, value, problem, _VALUE, *error.facts) from error


_TYPE = "Annotate the parameter with int, float, bool or str."
_VALUE = (
    "Take it for the nearest value that means something, or refuse it as the file is read: a static method"
    " problems(**arguments) of the plugin gives a sentence for each value that it cannot use."
)
_CLEAR = "A refusal is one sentence that names the argument, what was found and what was wanted."


def _values(argument: Argument) -> Iterator[Any]:
    if argument.name.endswith("_"):
        yield from VALUES["float"]
    else:
        yield from VALUES.get(argument.type, ANY)


def _wrong(argument: Argument) -> tuple[Any, ...]:
    return WRONG if argument.type in VALUES or argument.name.endswith("_") else ()


def _is_clear(spec: PluginSpec, argument: Argument, value: Any, error: PolicyError) -> None:
    """Raise Breach unless the refusal is one sentence that names plugin and argument."""
    named = spec.name in str(error) and argument.name.rstrip("_").replace("_", ".") in str(error).replace("_", ".")
    if len(error.problems) != 1 or not named:
        raise _breach(spec, argument, value, "is refused unclearly", _CLEAR, ("said", " | ".join(error.problems)))


def _breach(
    spec: PluginSpec, argument: Argument, value: Any, problem: str, advice: str, *facts: tuple[str, str]
) -> Breach:
    return Breach(
        "arguments", spec.name, f"argument {argument.name}", problem, [("value", repr(value)), *facts], advice
    )
