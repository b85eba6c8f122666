"""Parse and format Kubernetes quantities and Go durations, exactly.

Source: Kubernetes ``resource.Quantity`` (MilliValue, Value, String) and Go's ``time.ParseDuration``. Texts that would
silently become wrong numbers there are errors here: those without digits, and those beyond an int64.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pumice.model.plain_words import kind_of

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

Quantity = int | float | str

# A bound for both patterns below: longer texts are mistakes, and matching them would cost time.
_TEXT_MAX = 64
# Bounded, since a tenant may write ever new texts.
_CACHED_TEXTS = 16384

# Kubernetes writes kilo as a small k, and has no K without i.
_DECIMAL_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_FACTORS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
# At least one digit, by the look-ahead; Kubernetes accepts a lone sign as 0.
_QUANTITY = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?")
_QUANTITY_FORM = (
    "a number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or an exponent of one or two digits, "
    "such as 500m, 1.5Gi or 1e3"
)

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, the micro sign
    "μs": 10**3,  # U+03BC, the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_UNITS = "|".join(_NANOSECONDS)
_DURATION = re.compile(rf"([+-]?)(?:0|((?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:{_UNITS}))+))")
_DURATION_PART = re.compile(rf"([0-9]*)\.?([0-9]*)({_UNITS})")
_DAYS = re.compile(r"([0-9]{1,6})d([0-9.].*)?")  # days are no unit of Go's
_DURATION_FORM = "numbers with units (ns us ms s m h) such as 1h30m, 1.5h or 500ms"


class QuantityError(ValueError):
    """The value is not a Kubernetes quantity, or out of bounds."""


class QuantityTooLarge(QuantityError):
    """The value is a quantity that is larger than an int64 holds."""


class DurationError(ValueError):
    """The text is not a Go duration, or out of bounds."""


def milli_value(quantity: Quantity) -> int:
    """Return the quantity in thousandths, rounded away from zero: ``100.1m`` is 101.

    Raises: QuantityError with what was found and what is accepted.
    """
    if isinstance(quantity, str):
        return _milli_of_text(quantity)
    return _scaled_number(quantity, 1000)


def whole_value(quantity: Quantity) -> int:
    """Return the quantity in whole units, rounded away from zero: ``1500m`` is 2.

    Raises: QuantityError with what was found and what is accepted.
    """
    if isinstance(quantity, str):
        return _whole_of_text(quantity)
    return _scaled_number(quantity, 1)


@lru_cache(maxsize=_CACHED_TEXTS)
def _milli_of_text(text: str) -> int:
    """Return thousandths of a text. Cached, because few texts occur in many pods."""
    return _scaled_text(text, 1000)


@lru_cache(maxsize=_CACHED_TEXTS)
def _whole_of_text(text: str) -> int:
    """Return whole units of a text. Cached like ``_milli_of_text``."""
    return _scaled_text(text, 1)


def _scaled_number(quantity: Quantity, scale: int) -> int:
    """Return a number times ``scale``, within an int64."""
    if isinstance(quantity, float):
        return _scaled_text(repr(quantity), scale)  # the shortest text that reads back as this float
    if isinstance(quantity, bool) or not isinstance(quantity, int):
        raise QuantityError(f"{kind_of(quantity)} is not a quantity; accepted: {_QUANTITY_FORM}")
    # Python refuses to print very long integers, so these are described.
    shown = str(quantity) if quantity.bit_length() <= 128 else f"an integer of {quantity.bit_length()} bits"
    return _fitting(quantity * scale, shown, scale)


def _scaled_text(text: str, scale: int) -> int:
    """Return a text times ``scale``, rounded away from zero, within an int64."""
    # Bounded before the expression runs. Exponents have two digits at most, so the powers of ten stay small.
    match = _QUANTITY.fullmatch(text) if len(text) <= _TEXT_MAX else None
    if match is None:
        raise QuantityError(f"{_shown(text)} is not a quantity; accepted: {_QUANTITY_FORM}")
    sign, whole, fraction, suffix, exponent = match.groups(default="")
    # Integers only: a float would lose the last digits of large amounts.
    power = int(exponent or _DECIMAL_POWERS.get(suffix, 0)) - len(fraction)
    numerator = int(whole + fraction) * _BINARY_FACTORS.get(suffix, 1) * scale * 10 ** max(power, 0)
    # Negated twice to round up, since Kubernetes rounds away from zero, and never grants less than was asked for.
    magnitude = -(-numerator // 10 ** max(-power, 0))
    return _fitting(-magnitude if sign == "-" else magnitude, _shown(text), scale)


def _fitting(amount: int, shown: str, scale: int) -> int:
    """Return an amount that fits an int64. Raise QuantityError otherwise."""
    if INT64_MIN <= amount <= INT64_MAX:
        return amount
    # The message names the unit in which the bound holds: 2**60 is too large for cores and not for bytes.
    bound = f"larger than {INT64_MAX}" if amount > 0 else f"smaller than {INT64_MIN}"
    error = QuantityTooLarge if amount > 0 else QuantityError
    raise error(f"{shown} is {bound}{' thousandths' if scale == 1000 else ''}, the bound of an int64")


def _shown(text: str) -> str:
    """Return a text in quotes, shortened."""
    return repr(text) if len(text) <= _TEXT_MAX else f"{text[:16]!r}... ({len(text)} characters, at most {_TEXT_MAX})"


def format_quantity(name: str, value: float) -> str:
    """Return the canonical text for an amount of resource ``name``, as Kubernetes writes it.

    Units: ``cpu`` milli-cores, ``memory`` bytes, ``pods`` whole, all others thousandths; fractions of a unit are cut
    off. Memory of 1 KiB and more has a binary suffix if that is exact, everything else a decimal suffix. Raises:
    QuantityError if the value is not finite or does not fit an int64.
    """
    if not INT64_MIN <= value <= INT64_MAX:
        raise QuantityError(f"{value} of {name} cannot be written as a quantity: it is beyond an int64")
    amount = int(value)
    if name == "memory" and abs(amount) >= 1024:
        return _with_suffix(amount, 1024, ("", *_BINARY_FACTORS))
    if name in ("memory", "pods"):
        return _with_suffix(amount, 1000, ("", "k", "M", "G", "T", "P", "E"))
    return _with_suffix(amount, 1000, ("m", "", "k", "M", "G", "T", "P", "E"))


def _with_suffix(amount: int, step: int, suffixes: tuple[str, ...]) -> str:
    """Return an amount with the largest suffix that is exact."""
    # 0 is divisible by every step, so the loop below would not end.
    if amount == 0:
        return "0"
    level = 0
    while amount % step == 0:
        amount //= step
        level += 1
    return f"{amount}{suffixes[level]}"


def parse_duration(text: str) -> float:
    """Return seconds of a Go duration such as ``1h30m`` or ``500ms``, exact to the nanosecond.

    Raises: DurationError with what was found and what is accepted.
    """
    if not isinstance(text, str):
        raise DurationError(f"{kind_of(text)} is not a duration; accepted: {_DURATION_FORM}")
    match = _DURATION.fullmatch(text) if len(text) <= _TEXT_MAX else None
    if match is None:
        raise DurationError(f"{_shown(text)} is not a duration; accepted: {_DURATION_FORM}")
    sign, parts = match.groups(default="")
    # In integers, because sums of floats would not be exact to the nanosecond.
    total = sum(_nanoseconds(*part) for part in _DURATION_PART.findall(parts))
    if total > INT64_MAX:
        raise DurationError(f"{_shown(text)} is longer than {INT64_MAX} nanoseconds, the bound of an int64")
    return (-total if sign == "-" else total) / 10**9


def duration_or_none(value: object) -> float | None:
    """Return seconds of a Go duration, or None for what is no duration."""
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except DurationError:
        return None


def duration_or(value: object, default: float) -> float:
    """Return seconds of a Go duration, or a default for what is no duration."""
    found = duration_or_none(value)
    return default if found is None else found


def parse_days(text: str) -> float:
    """Return seconds of a duration that may begin with whole days: ``2d``, ``1d12h``, ``1h30m``.

    Raises: DurationError with what was found and what is accepted.
    """
    match = _DAYS.fullmatch(text) if isinstance(text, str) and len(text) <= _TEXT_MAX else None
    if match is None:
        return parse_duration(text)
    return int(match[1]) * 86_400.0 + (parse_duration(match[2]) if match[2] else 0.0)


def _nanoseconds(whole: str, fraction: str, unit: str) -> int:
    """Return the nanoseconds of one number with its unit."""
    places: int = 10 ** len(fraction)
    return int(whole + fraction) * _NANOSECONDS[unit] // places
