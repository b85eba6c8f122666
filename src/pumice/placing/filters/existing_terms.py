"""Terms of pods that are there, or may soon be, asked from the side of the pod that comes: which of them are about it?

Pods of a job look alike to a selector, so the answer is kept by namespace and by the labels that the terms look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pumice.model.pod import PodAffinityTerm, PodSpec
from pumice.placing.filters.pods import PodIndex, PodSet, classes_where, means

Weighted = tuple[PodAffinityTerm, int]
#: A task's namespace and labels, as far as terms look at them; empty where there are no terms.
Looks = tuple[str | None, ...]


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
        for cls in classes_where(index.ssn, what, lambda spec: any(True for _ in terms_of(spec))):
            times: dict[Weighted, int] = {}
            for weighted in terms_of(tables.classes.specs[cls]):
                times[weighted] = times.get(weighted, 0) + 1  # a spec may say the same thing twice: it counts twice
                classes_of.setdefault((*weighted, times[weighted]), []).append(cls)
        self._standing = [Standing(t, index.of_classes(tuple(c)), w) for (t, w, _), c in classes_of.items()]
        self._keys: list[str] = []  # labels that the terms look at
        self._by_label: dict[tuple[str, str], list[int]] = {}  # terms that want this label
        self._others: list[int] = []
        for i, standing in enumerate(self._standing):
            self._file(i, standing.term)
        self._about: dict[Looks, tuple[Standing, ...]] = {}
        self._about_class: dict[int, bool] = {}

    def _file(self, position: int, term: PodAffinityTerm) -> None:
        """Where a pod that the term may be about finds it: gangs that look at themselves alone have a term each."""
        if term.selector is None:
            return  # about no pod
        self._keys += [r.key for r in term.selector.requirements if r.key not in self._keys]
        wanted = next((r for r in term.selector.requirements if r.operator == "In"), None)
        if wanted is None:
            self._others.append(position)
            return
        for value in dict.fromkeys(wanted.values):
            self._by_label.setdefault((wanted.key, value), []).append(position)

    def looks(self, row: int) -> Looks:
        """What the terms look at of the task: all of a look are about the same tasks."""
        if not self._standing:
            return ()
        pod = self._index.tables.tasks.pods[row]
        return (pod.namespace, *[pod.labels.get(key) for key in self._keys])

    def about(self, row: int) -> tuple[Standing, ...]:
        """The terms that are about the task."""
        if not self._standing:
            return ()
        looks = self.looks(row)
        found = self._about.get(looks)
        if found is None:
            pod = self._index.tables.tasks.pods[row]
            labels = zip(self._keys, looks[1:], strict=True)
            near = [i for key, value in labels if value is not None for i in self._by_label.get((key, value), ())]
            candidates = (self._standing[i] for i in sorted({*near, *self._others}))
            found = self._about[looks] = tuple(s for s in candidates if means(s.term, pod))
        return found

    def about_class(self, cls: int) -> bool:
        """Whether some term is about some task of the class."""
        if not self._standing:
            return False
        found = self._about_class.get(cls)
        if found is None:
            rows = self._index.of_classes((cls,)).rows.tolist()
            found = self._about_class[cls] = any(self.about(row) for row in rows)
        return found
