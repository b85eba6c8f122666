"""Read the strategies of resource-strategy-fit: fill nodes or keep them empty, keep scarce resources free, keep CPU
and memory beside idle devices. Invalid parts are ignored and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from pumice.model.plain_words import kind_of
from pumice.model.strategy import LEAST_ALLOCATED, MOST_ALLOCATED, ResourceStrategy

DEFAULT_WEIGHT = 10
_NUMBER_MAX = 1e6


class Rule(NamedTuple):
    """A strategy for one resource. ``most``: fuller nodes score higher, else emptier ones."""

    most: bool
    weight: float


class Strategies(Struct, frozen=True):
    """``weight`` of the whole score; ``rules`` by name or by prefix that ends in ``*``."""

    weight: int
    rules: Mapping[str, Rule]

    @classmethod
    def read(cls, weight: int, resources: object) -> Strategies:
        """Read the arguments. Without ``resources``: emptier nodes by CPU and memory."""
        rules = dict(_rules(resources)) if resources else {name: Rule(False, 1.0) for name in ("cpu", "memory")}
        return cls(DEFAULT_WEIGHT if weight < 0 else weight, rules)

    @classmethod
    def of_pod(cls, strategy: ResourceStrategy) -> Strategies:
        """Return the strategies of a pod, which have exact names."""
        # The weight of the whole stays the policy's: a pod chooses its resources and not its influence against other
        # plugins.
        return cls(1, {name: Rule(strategy.most, float(weight)) for name, weight in strategy.weights})

    def of(self, name: str) -> Rule | None:
        """Return the rule of a name, or else of its longest prefix. Source: Volcano findResourceConfigWithPrefix."""
        # A name goes before a prefix, and a longer prefix before a shorter one, so that exceptions can be written.
        exact = self.rules.get(name)
        if exact is not None:
            return exact
        prefixes = [each for each in self.rules if each.endswith("*") and name.startswith(each[:-1])]
        return self.rules[max(prefixes, key=len)] if prefixes else None


class Scarce(Struct, frozen=True):
    """``weights`` of scarce resources by name, and the ``weight`` of the score; 0: the score is off."""

    weight: float = 0.0
    weights: Mapping[str, float] = {}

    @classmethod
    def read(cls, given: object) -> Scarce:
        """Read the argument ``sra``."""
        if not isinstance(given, Mapping) or given.get("enable") is not True:
            return cls()
        # The names come from ``resources`` alone; a weight for a name that is not listed there has no effect.
        own = given.get("resourceWeight")
        own = own if isinstance(own, Mapping) else {}
        weight = _number(given.get("weight"), 0.0)
        return cls(weight, {name: _number(own.get(name), 1.0) for name in _names(given)})


class Proportions(Struct, frozen=True):
    """``rates``: per resource, how many cores and how many GB of memory stay free for each idle device."""

    rates: Mapping[str, tuple[float, float]] = {}

    @classmethod
    def read(cls, given: object) -> Proportions:
        """Read the argument ``proportional``."""
        if not isinstance(given, Mapping) or given.get("enable") is not True:
            return cls()
        own = given.get("resourceProportion")
        own = own if isinstance(own, Mapping) else {}
        each = {n: (_number(own.get(f"{n}.cpu"), 1.0), _number(own.get(f"{n}.memory"), 1.0)) for n in _names(given)}
        return cls(each)


def _rules(resources: object) -> Iterator[tuple[str, Rule]]:
    """Yield the valid rules."""
    for name, given in resources.items() if isinstance(resources, Mapping) else ():
        if isinstance(name, str) and _is_pattern(name) and isinstance(given, Mapping):
            weight = _number(given.get("weight"), 1.0)
            # Volcano takes a weight of 0 for one that is not set.
            yield name, Rule(given.get("type") == MOST_ALLOCATED, weight or 1.0)


def _is_pattern(name: str) -> bool:
    """Return True for a name, or for a prefix of at least one character with one ``*`` at its end."""
    # A bare star would match every resource, CPU and memory included. Volcano rejects it too.
    return "*" not in name[:-1] and name not in ("*", "")


def _number(given: object, default: float) -> float:
    """Return a bounded number, or the default."""
    # Bounded, so that a sum of weights stays finite.
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= _NUMBER_MAX:
        return float(given)
    return default


def _names(given: Mapping[str, Any]) -> list[str]:
    """Return the names in a comma-separated list."""
    text = given.get("resources")
    return [name for part in text.split(",") if (name := part.strip())] if isinstance(text, str) else []


# -- what is wrong


def argument_problems(resources: object, sra: object, proportional: object) -> Iterator[str]:
    """Yield a message for each part of the arguments that is not used as it is written."""
    if resources is not None and not isinstance(resources, Mapping):
        yield f"argument resources: found {kind_of(resources)}, wanted a mapping by resource"
    for name, given in resources.items() if isinstance(resources, Mapping) else ():
        yield from _problems_of(name, given)
    for what, argument in (("sra", sra), ("proportional", proportional)):
        if argument is not None and not isinstance(argument, Mapping):
            yield f"argument {what}: found {kind_of(argument)}, wanted a mapping"
        elif argument is not None and argument.get("enable") not in (True, False, None):
            yield f"argument {what}.enable: found {argument['enable']!r:.80}, wanted true or false; it is off"


def _problems_of(name: object, given: object) -> Iterator[str]:
    """Yield a message for an invalid rule."""
    where = f"argument resources: {str(name)[:80]!r}"
    if not isinstance(name, str) or not _is_pattern(name):
        yield f"{where}: wanted a name, or a prefix with one * at its end; it is left out"
    elif not isinstance(given, Mapping):
        yield f"{where}: found {kind_of(given)}, wanted type and weight; it is left out"
    elif given.get("type", LEAST_ALLOCATED) not in (MOST_ALLOCATED, LEAST_ALLOCATED):
        yield f"{where}: found type {given['type']!r:.80}, wanted {MOST_ALLOCATED} or {LEAST_ALLOCATED}, which it is"
