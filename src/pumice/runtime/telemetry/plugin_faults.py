"""Faults of plugins for operators: one log line when a fault first appears, and a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pumice.framework.cycle.trace import Fault
from pumice.model.plain_words import first_names


class Culprit(NamedTuple):
    """A place in a plugin. ``where``: file and line."""

    plugin: str
    point: str
    hook: str
    where: str


def by_culprit(faults: Iterable[Fault]) -> Iterator[tuple[Culprit, str]]:
    """Yield each culprit with a sentence: which plugin, where, the first fault, and what was skipped."""
    found: dict[Culprit, list[Fault]] = {}
    for fault in faults:
        found.setdefault(Culprit(fault.plugin, fault.point, fault.hook, fault.where), []).append(fault)
    for culprit, each in found.items():
        subjects = list(dict.fromkeys(fault.subject for fault in each))
        yield culprit, f"{each[0].text}; skipped: {first_names(subjects)}"


class FaultLog:
    """``counts``: faults so far by culprit. A culprit is logged again only after a cycle without a fault of it."""

    def __init__(self) -> None:
        self.counts: Counter[Culprit] = Counter()
        self._failing: set[Culprit] = set()

    def take(self, faults: Iterable[Fault]) -> None:
        """Take the faults of one cycle."""
        faults = list(faults)
        if not faults and not self._failing:
            return
        for fault in faults:
            self.counts[Culprit(fault.plugin, fault.point, fault.hook, fault.where)] += 1
        texts = dict(by_culprit(faults))
        for culprit, text in texts.items():
            if culprit not in self._failing:
                _log(culprit, text)
        self._failing = set(texts)


def _log(culprit: Culprit, text: str) -> None:
    """Write a log line. The library is imported for the first one: most simulations write none."""
    from logging import getLogger

    getLogger("pumice.plugins").error("%s", text, extra={"fields": culprit._asdict()})
