"""CEL selectors of devices: evaluates an expression for a device. Source: Kubernetes dynamic resource allocation.

Every user who may create a claim can write an expression, so its cost is bounded before it runs: by its length, by
refusing loops within loops and large patterns, and by counting what it does in steps. Patterns are RE2's. The library
is an extra (``dra``) and is imported for the first selector, because few clusters have any. Decision 0021 has the
figures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from pumice.algorithms.cel_tree import Lookup, Tree, Work, read_tree
from pumice.algorithms.patterns import PatternError, compile_pattern
from pumice.model.quantity import INT64_MAX, milli_value

EXPRESSION_MAX = 2_048
#: The most compiled selectors and answers that are kept.
_SELECTORS, _ANSWERS = 1_024, 65_536
#: What the library raises for expressions of users.
_FAULTS = (RuntimeError, TypeError, ValueError, OverflowError)
#: The most characters of an expression or answer that an error quotes.
_QUOTED_MAX = 160
#: What an evaluation takes, in microseconds: in any case; for each expression that is evaluated; for a call of one of
#: our functions, which are Python's; for a match, whose pattern the library compiles each time, and for each step of
#: that pattern. A step is so many of them.
_ANY_US, _VISIT_US, _CALL_US, _MATCH_US, _SIZE_US, _STEP_US = 10.0, 0.025, 3.0, 5.0, 1.0, 15.0
_NUMBER = r"(0|[1-9][0-9]{0,17})"
_OURS = frozenset(
    {
        *("quantity", "isQuantity", "semver", "isSemver", "asInteger", "sign"),
        *("compareTo", "isGreaterThan", "isLessThan"),
    }
)
_SEMVER = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class SelectorError(ValueError):
    """An expression cannot be used, or has no answer for a device, for the reason in the message."""


#: A device as expressions see it: driver, and (domain, name, value) of attributes and of capacity, in milli-units.
#: Hashable, so that answers can be kept by device: equal devices of many nodes are evaluated once.
Face = tuple[str, tuple[tuple[str, str, bool | int | str], ...], tuple[tuple[str, str, int], ...]]


def selects(expression: str, face: Face) -> bool:
    """Return True if the expression selects such a device.

    Raises: SelectorError if ``check`` refuses the expression, or it does not answer true or false for this device.
    """
    return selects_narrowed(expression, narrowed(face, lookups_of(expression)))


def selects_narrowed(expression: str, face: Face) -> bool:
    """Return True if the expression selects a device that is ``narrowed`` to what it looks at.

    Raises: SelectorError, as ``selects`` does.
    """
    return _answer(expression, face)


def lookups_of(expression: str) -> frozenset[Lookup] | None:
    """Return what an expression looks at of a device, or None for all. Raises: SelectorError if ``check`` would."""
    return _compiled(expression)[1].lookups


def steps_of(expression: str) -> int:
    """Return the steps of an evaluation at most, 1 for most expressions. Raises: SelectorError if ``check`` would."""
    return _compiled(expression)[2]


def narrowed(face: Face, lookups: frozenset[Lookup] | None) -> Face:
    """Return a device with those attributes and capacities only that an expression looks at. None: all."""
    # Thousands of devices differ in a serial number, and few expressions look at it.
    if lookups is None:
        return face
    driver, attributes, capacity = face
    return (
        driver,
        tuple(each for each in attributes if ("attributes", *each[:2]) in lookups),
        tuple(each for each in capacity if ("capacity", *each[:2]) in lookups),
    )


@lru_cache(maxsize=_ANSWERS)
def _answer(expression: str, face: Face) -> bool:
    """Evaluate an expression. Raises: SelectorError if the answer is neither true nor false."""
    compiled, tree, _ = _compiled(expression)
    driver, attributes, capacity = face
    device: dict[str, Any] = {"driver": driver, "attributes": {}, "capacity": {}, "allowMultipleAllocations": False}
    # In Kubernetes a domain that a device does not have is an empty map: looking it up must not be an error.
    for kind, domain in tree.domains:
        device[kind][domain] = {}
    for kind, values in (("attributes", attributes), ("capacity", capacity)):
        for domain, name, value in values:
            device[kind].setdefault(domain, {})[name] = value
    try:
        found = compiled.eval(_environment().Activation({"device": device})).value()
    except _FAULTS:
        # The library's text names its own types and files, which say nothing to the author of the claim.
        raise SelectorError("answered what is not a plain value, wanted true or false") from None
    # By type and not by truth: Kubernetes refuses an expression whose result is a number or a text.
    if type(found) is not bool:
        raise SelectorError(f"answered {str(found)[:_QUOTED_MAX]}, wanted true or false")
    return found


def check(expression: str) -> None:
    """Check an expression before it is used.

    Raises: SelectorError if it is not valid CEL, is too long, may take too long, or the extra is not installed.
    """
    _compiled(expression)


@lru_cache(maxsize=_SELECTORS)
def _compiled(expression: str) -> tuple[Any, Tree, int]:
    """Return an expression, its tree, and the steps of an evaluation."""
    if len(expression) > EXPRESSION_MAX:
        raise SelectorError(f"a selector of {len(expression)} characters, at most {EXPRESSION_MAX}")
    try:
        compiled = _environment().compile(expression)
        tree = read_tree(compiled.serialize())
    except ImportError:
        raise SelectorError("CEL selectors need the extra 'dra' (pip install 'pumice[dra]')") from None
    except TypeError:
        raise SelectorError("a selector with characters that are not valid Unicode") from None
    except _FAULTS as error:
        raise SelectorError(" ".join(str(error).split())[:_QUOTED_MAX]) from None
    # Each loop multiplies the number of steps by the length of a list, so two of them have no useful bound.
    if tree.has_nested_loop:
        raise SelectorError("a selector with a loop within a loop")
    return compiled, tree, _steps(tree.work)


def _steps(work: Work) -> int:
    """Return the steps of an evaluation. Raises: SelectorError for a pattern that is too large, or not known."""
    ours = sum(count for name, count in work.calls.items() if name in _OURS)
    micros = _ANY_US + _VISIT_US * work.visits + _CALL_US * ours
    for pattern, times in work.patterns:
        # One of a hundred letters takes a tenth of a second, for each kind of device.
        if pattern is None:
            raise SelectorError("a selector with a pattern that is no constant")
        try:
            micros += times * (_MATCH_US + _SIZE_US * compile_pattern(pattern).size)
        except PatternError as error:
            raise SelectorError(f"a selector with a pattern that cannot be used: {error}"[:_QUOTED_MAX]) from None
    return max(1, round(micros / _STEP_US))


# -- what Kubernetes adds to CEL: quantities and versions


@cache
def _environment() -> Any:
    # The library cannot declare types of its own. So quantities are numbers, of thousandths, and versions are texts.
    from cel_expr_python import cel  # noqa: PLC0415, TID251 - late and here only: decision 0021
    from cel_expr_python.ext import ext_optional  # noqa: PLC0415, TID251

    kind = cel.Type

    def of(name: str, taken: list[Any], answered: Any, call: Any, *, member: bool = True) -> Any:
        overload = cel.Overload(f"{name}_{'_'.join(str(each.name()) for each in taken)}", answered, taken, member, call)
        return name, overload

    number, text = kind.INT, kind.STRING
    listed = [
        of("quantity", [text], number, _quantity, member=False),
        of("isQuantity", [text], kind.BOOL, lambda each: _is(each, _quantity), member=False),
        of("semver", [text], text, _version, member=False),
        of("isSemver", [text], kind.BOOL, lambda each: _is(each, _version), member=False),
        of("asInteger", [number], number, lambda each: each // 1000),
        of("sign", [number], number, lambda each: (each > 0) - (each < 0)),
        *(
            of(name, [of_kind, of_kind], kind.INT if name == "compareTo" else kind.BOOL, call)
            for of_kind, key in ((number, int), (text, _version_key))
            for name, call in _comparisons(key)
        ),
    ]
    names = dict.fromkeys(name for name, _ in listed)
    declared = [cel.FunctionDecl(name, [each for of_name, each in listed if of_name == name]) for name in names]
    extensions = [ext_optional.ExtOptional(), cel.CelExtension("kubernetes", declared)]
    return cel.NewEnv(variables={"device": kind.DYN}, extensions=extensions)


def _comparisons(key: Any) -> list[tuple[str, Any]]:
    return [
        ("compareTo", lambda a, b: (key(a) > key(b)) - (key(a) < key(b))),
        ("isGreaterThan", lambda a, b: key(a) > key(b)),
        ("isLessThan", lambda a, b: key(a) < key(b)),
    ]


def _quantity(written: str) -> int:
    return min(milli_value(written), INT64_MAX)


def _version(written: str) -> str:
    _version_key(written)
    return written


def _version_key(written: str) -> tuple[Any, ...]:
    """Return a sort key for a semantic version. A pre-release is before its release.

    Raises: ValueError if the text is not a version.
    """
    found = _SEMVER.fullmatch(written)
    if found is None:
        raise ValueError(f"not a version: {written[:_QUOTED_MAX]}")
    parts = (found[4] or "").split(".") if found[4] else []
    # Numbers compare as numbers and are before texts. Source: semver.org, rule 11.
    pre = tuple((0, int(each), "") if each.isdecimal() else (1, 0, each) for each in parts)
    return int(found[1]), int(found[2]), int(found[3]), not pre, pre


def _is(written: str, read: Any) -> bool:
    try:
        read(written)
    except ValueError:
        return False
    return True


def domain_of(name: str, driver: str) -> tuple[str, str]:
    """Split ``domain/name`` into its two parts. The domain of a name without one is the driver."""
    domain, slash, own = name.rpartition("/")
    return (domain, own) if slash else (driver, name)


def face_of(driver: str, attributes: Mapping[str, tuple[str, str]], capacity: Mapping[str, float]) -> Face:
    """Return a device as expressions see it, from attributes (kind, text) and capacities by name."""
    # Sorted, so that equal devices are equal keys of ``selects``.
    return (
        driver,
        tuple((*domain_of(name, driver), _value(*each)) for name, each in sorted(attributes.items())),
        tuple(
            (*domain_of(name, driver), min(int(amount * 1000), INT64_MAX)) for name, amount in sorted(capacity.items())
        ),
    )


def _value(kind: str, written: str) -> bool | int | str:
    return bool(written) if kind == "bool" else int(written) if kind == "int" else written
