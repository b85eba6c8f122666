"""Terms of pods that are there, or may soon be, asked from the side of the pod that comes: which of them are about it?

Pods of a job look alike to a selector, so the answer is kept by namespace and by the labels that the terms look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.model.pod import PodAffinityTerm, PodSpec
from pumice.placing.filters.pods import PodIndex, PodSet, classes_where, means

Weighted = tuple[PodAffinityTerm, int]
#: A task's namespace, and those of its labels that terms look at; empty where there are no terms.
Looks = tuple[str | tuple[str, str], ...]


class Standing(NamedTuple):
    """Terms of one topology key and weight. ``owners``: the pods that have one, a pod with several as often.
    ``weight`` is below 0 for a wish to be apart."""

    topology_key: str
    owners: PodSet
    weight: int


class StandingTerms:
    """The terms that ``terms_of`` finds in specs of live pods; ``what`` names them."""

    def __init__(self, index: PodIndex, what: str, terms_of: Callable[[PodSpec], Iterable[Weighted]]) -> None:
        self._index, self._what = index, what
        tables = index.tables
        classes_of: dict[Weighted, list[int]] = {}
        for cls in classes_where(index.ssn, what, lambda spec: any(True for _ in terms_of(spec))):
            for weighted in terms_of(tables.classes.specs[cls]):
                if not index.derived.label(weighted[0].topology_key).values:
                    continue  # no node is in a domain
                classes_of.setdefault(weighted, []).append(cls)  # a spec may say the same thing twice: it counts twice
        self._terms = list(classes_of)
        self._owners = [index.rows_of_classes(classes) for classes in classes_of.values()]
        self._keys: set[str] = set()  # labels that the terms look at
        self._by_label: dict[tuple[str, str], list[int]] = {}  # terms that want this label
        self._others: list[int] = []
        for i, (term, _) in enumerate(self._terms):
            self._file(i, term)
        self._about: dict[Looks, tuple[Standing, ...]] = {}
        self._about_class: dict[int, bool] = {}

    def _file(self, position: int, term: PodAffinityTerm) -> None:
        """Where a pod that the term may be about finds it: gangs that look at themselves alone have a term each."""
        if term.selector is None:
            return  # about no pod
        self._keys.update(r.key for r in term.selector.requirements)
        wanted = next((r for r in term.selector.requirements if r.operator == "In"), None)
        if wanted is None:
            self._others.append(position)
            return
        for value in dict.fromkeys(wanted.values):
            self._by_label.setdefault((wanted.key, value), []).append(position)

    def looks(self, row: int) -> Looks:
        """What the terms look at of the task: all of a look are about the same tasks."""
        if not self._terms:
            return ()
        pod = self._index.tables.tasks.pods[row]
        return (pod.namespace, *sorted(label for label in pod.labels.items() if label[0] in self._keys))

    def about(self, row: int) -> tuple[Standing, ...]:
        """The terms that are about the task."""
        if not self._terms:
            return ()
        looks = self.looks(row)
        found = self._about.get(looks)
        if found is None:
            pod = self._index.tables.tasks.pods[row]
            near = [i for label in pod.labels.items() for i in self._by_label.get(label, ())]
            several = sorted({*near, *self._others})
            found = self._about[looks] = self._together([i for i in several if means(self._terms[i][0], pod)], looks)
        return found

    def _together(self, positions: list[int], looks: Looks) -> tuple[Standing, ...]:
        """Some terms, those of one topology key and weight as one."""
        owners: dict[tuple[str, int], list[AnyArray]] = {}
        for i in positions:
            term, weight = self._terms[i]
            owners.setdefault((term.topology_key, weight), []).append(self._owners[i])
        return tuple(
            Standing(key, self._index.of_rows((self._what, looks, key, weight), np.sort(np.concatenate(rows))), weight)
            for (key, weight), rows in owners.items()
        )

    def about_class(self, cls: int) -> bool:
        """Whether some term is about some task of the class."""
        if not self._terms:
            return False
        found = self._about_class.get(cls)
        if found is None:
            rows = self._index.of_classes((cls,)).rows.tolist()
            found = self._about_class[cls] = any(self.about(row) for row in rows)
        return found
