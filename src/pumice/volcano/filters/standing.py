"""Terms of pods that are there, or may soon be, asked from the side of the pod that comes: which of them are about it?

Pods of a job look alike to a selector, so the answer is kept by namespace and by the labels that the terms look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from pumice.model.pod import PodAffinityTerm, PodSpec
from pumice.volcano.filters.pods import PodIndex, PodSet, classes_where, means

Weighted = tuple[PodAffinityTerm, int]


class Standing(NamedTuple):
    """One term and the pods that have it. ``weight`` is below 0 for a wish to be apart."""

    term: PodAffinityTerm
    owners: PodSet
    weight: int


class StandingTerms:
    """The terms that ``terms_of`` finds in specs of live pods; ``what`` names them."""

    def __init__(self, index: PodIndex, what: str, terms_of: Callable[[PodSpec], Iterable[Weighted]]) -> None:
        self._index = index
        tables = index.tables
        classes_of: dict[tuple[PodAffinityTerm, int, int], list[int]] = {}
        for cls in classes_where(tables, what, lambda spec: any(True for _ in terms_of(spec))):
            times: dict[Weighted, int] = {}
            for weighted in terms_of(tables.classes.specs[cls]):
                times[weighted] = times.get(weighted, 0) + 1  # a spec may say the same thing twice: it counts twice
                classes_of.setdefault((*weighted, times[weighted]), []).append(cls)
        self._standing = [Standing(t, index.of_classes(tuple(c)), w) for (t, w, _), c in classes_of.items()]
        selectors = [s.term.selector for s in self._standing if s.term.selector is not None]
        self._keys = sorted({r.key for selector in selectors for r in selector.requirements})
        self._about: dict[tuple[str | None, ...], tuple[Standing, ...]] = {}
        self._about_class: dict[int, bool] = {}

    def about(self, row: int) -> tuple[Standing, ...]:
        """The terms that are about the task."""
        if not self._standing:
            return ()
        pod = self._index.tables.tasks.pods[row]
        looks = (pod.namespace, *map(pod.labels.get, self._keys))
        found = self._about.get(looks)
        if found is None:
            found = self._about[looks] = tuple(s for s in self._standing if means(s.term, pod))
        return found

    def about_class(self, cls: int) -> bool:
        """Whether some term is about some task of the class."""
        if not self._standing:
            return False
        found = self._about_class.get(cls)
        if found is None:
            tasks = self._index.tables.tasks
            rows = np.flatnonzero((tasks.cls == cls) & tasks.alive).tolist()
            found = self._about_class[cls] = any(self.about(row) for row in rows)
        return found
