"""Answers for users who may see the jobs of some namespaces only.

An answer names the jobs that hold a limit, that leave, or that come first. Those of other namespaces are taken out of
it. Queues, nodes and amounts stay: a user who waits for them needs them, and they are sums over all jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from pumice.answers.codes import WORDS, Code
from pumice.answers.explanation import Explanation, Part
from pumice.answers.ways import Way
from pumice.answers.world import World

#: Replaces the name of a job, pod or other object of a namespace that is not seen.
OTHER = "a job of another namespace"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


class HiddenNames:
    """Finds names of objects in namespaces that a user may not see, in texts that have them as ``namespace/name``."""

    def __init__(self, hidden: Iterable[str]) -> None:
        self._hidden = frozenset(hidden)

    def are_in(self, text: str) -> bool:
        """Return True if a text names such an object, or one of these namespaces as a word of its own."""
        return any(self._start(word[0]) >= 0 or word[0].rstrip(".") in self._hidden for word in _WORD.finditer(text))

    def removed(self, text: str) -> str:
        """Return a text without these names."""
        return _WORD.sub(lambda word: OTHER if self._start(word[0]) >= 0 else word[0], text) if self._hidden else text

    def _start(self, word: str) -> int:
        """Return the place of a hidden namespace in a word such as ``job/ml/bert``, -1 if it has none."""
        parts = word.split("/")
        return next((at for at, part in enumerate(parts[:-1]) if part in self._hidden), -1)


def hidden_of(world: World, seen: frozenset[str] | None) -> HiddenNames:
    """Return the names of a world that a user may not see. ``seen``: namespaces, None for all."""
    if seen is None:
        return HiddenNames(())
    return HiddenNames({key.partition("/")[0] for key in (*world.groups, *world.pods_of)} - seen)


def as_seen(found: Explanation, hidden: HiddenNames) -> Explanation:
    """Return an explanation without the names that a user may not see, and without ways out that consist of them."""
    ways = (_way(each, hidden) for each in found.ways)
    place = found.place
    if place is not None:
        place = replace(place, ahead=tuple(hidden.removed(each) for each in place.ahead))
    parts = tuple(_part(each, hidden) for each in found.parts)
    wait = found.wait
    if wait is not None:
        wait = replace(wait, ends=tuple(hidden.removed(each) for each in wait.ends))
    return replace(found, parts=parts, ways=tuple(way for way in ways if way), place=place, wait=wait)


def _part(part: Part, hidden: HiddenNames) -> Part:
    if part.code is Code.FAULT:  # a plugin writes into its errors what it likes
        return replace(part, sentence=WORDS[part.code].meaning, blocker=None)
    named = part.blocker is not None and hidden.are_in(repr(part.blocker.plain))
    holders = tuple(replace(each, job=hidden.removed(each.job)) for each in part.holders)
    return replace(
        part, sentence=hidden.removed(part.sentence), blocker=None if named else part.blocker, holders=holders
    )


def _way(way: Way, hidden: HiddenNames) -> Way | None:
    if any(hidden.are_in(line) for line in (*way.text, *way.commands, *way.changes)):
        return None
    losers = tuple(each for each in way.losers if not hidden.are_in(each))
    others = len(way.losers) - len(losers)
    if not others:
        return way
    return replace(way, losers=(*losers, OTHER if others == 1 else f"{others} jobs of other namespaces"))
