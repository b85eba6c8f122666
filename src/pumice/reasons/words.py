"""Amounts and names in words of users: cores, GiB, GPUs; the name that a user may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pumice.model.resources import CPU, MEMORY, PODS

#: Names in one sentence.
NAMES_MAX = 8
GIB = 2.0**30


def per_unit(resource: str) -> float:
    """How many of ``Resource``'s units (milli-cores, bytes, pods, thousandths of others) make one that people count."""
    return GIB if resource == MEMORY else 1.0 if resource == PODS else 1000.0


def short_name(resource: str) -> str:
    """``GPU`` for ``nvidia.com/gpu``: the last part of a name."""
    own = resource.rpartition("/")[2]
    return own.upper() if len(own) <= 4 and own != PODS else own


def number(resource: str, value: float) -> str:
    """How many, as people count the resource: ``16`` for 16 GiB of memory or 16,000 thousandths of a core."""
    found = value / per_unit(resource)
    return f"{found:,.0f}" if abs(found - round(found)) < 0.005 else f"{found:,.2f}".rstrip("0")


def unit(resource: str, count: str = "") -> str:
    """``cores``, ``GiB``, ``GPUs``; of just one ``core``, ``GPU``."""
    if resource == MEMORY:
        return "GiB"
    name = "core" if resource == CPU else short_name(resource).removesuffix("s")
    return name if count == "1" else f"{name}s"


def amount(resource: str, value: float, *, of_memory: bool = False) -> str:
    """``4 cores``, ``1 GPU``, ``8 GiB``; ``of_memory``: ``8 GiB of memory``."""
    count = number(resource, value)
    tail = " of memory" if of_memory and resource == MEMORY else ""
    return f"{count} {unit(resource, count)}{tail}"


def are(count: str) -> str:
    """``is`` of just one, else ``are``."""
    return "is" if count == "1" else "are"


def is_free(resource: str, value: float) -> str:
    """``1 core is free``, ``4 GPUs are free``"""
    return f"{amount(resource, value)} {are(number(resource, value))} free"


def counted(count: int, what: str) -> str:
    """Return a count with its noun: ``1 node``, ``2,000 nodes``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def verb(count: int, one: str, many: str) -> str:
    """The form of a verb that goes with so many."""
    return one if count == 1 else many


def joined(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else "".join(parts)


def names(found: Sequence[str], most: int = NAMES_MAX) -> str:
    """The first of them, and how many more there are."""
    shown = list(found[:most])
    return joined([*shown, f"{len(found) - most:,} more"]) if len(found) > most else joined(shown)


def meant(name: str, there: Iterable[str]) -> str | None:
    """The name that is there and most like this one, None where none is like it."""
    plain = {_plain(each): each for each in sorted(there, reverse=True)}
    close = get_close_matches(_plain(name), plain, n=1, cutoff=0.7)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(".", "")
