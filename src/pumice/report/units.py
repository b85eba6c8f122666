"""Amounts and times as people read them."""

from __future__ import annotations


def shortest(value: float, digits: int) -> float | int:
    """Return a number rounded to so many digits after the point, as a whole number if it is one."""
    found = round(value, digits)
    return int(found) if found == int(found) else found


def duration(seconds: float | None) -> str:
    """Return a duration as text with at most two units: ``3 d 4 h``, ``12 min 5 s``, ``0.25 s``; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 0.0005:
        return "0 s"
    if seconds < 10:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for name, size, small, unit in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            first, rest = divmod(whole, size)
            second = rest // unit
            return f"{first:,} {name} {second} {small}" if second else f"{first:,} {name}"
    return f"{whole} s"


def percent(share: float | None) -> str:
    """Return a share as text: ``61.2 %``; a dash for None."""
    return "–" if share is None else f"{100 * share:.1f} %"


def amount(value: float) -> str:
    """Return a number with separated thousands and at most a few digits."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.3g}"
