"""Terms of pods that are placed or may be, from the side of the incoming pod: which of them are about it?

Pods of a job look equal to a selector, so answers are kept by namespace and by the labels that the terms read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.model.pod import PodAffinityTerm, PodSpec
from pumice.placing.filters.pods import PodIndex, PodSet, classes_where, means

Weighted = tuple[PodAffinityTerm, int]
#: The namespace of a task and those of its labels that terms read; empty if there are no terms.
Looks = tuple[str | tuple[str, str], ...]


class ExistingTerm(NamedTuple):
    """Terms with one topology key and weight. ``owners``: pods that have such a term, as often as they have one.
    ``weight`` is negative for anti-affinity."""

    topology_key: str
    owners: PodSet
    weight: int


class ExistingTerms:
    """The terms that ``terms_of`` finds in specs of live pods. ``what`` names them."""

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
        self._about: dict[Looks, tuple[ExistingTerm, ...]] = {}
        self._about_class: dict[int, bool] = {}

    def _file(self, position: int, term: PodAffinityTerm) -> None:
        """Index a term by a label that it requires."""
        # Gangs that are about themselves only have a term each. Without the index, every pod would be matched with all.
        if term.selector is None:
            return  # about no pod
        self._keys.update(r.key for r in term.selector.requirements)
        # Any one required label will do: a pod without it cannot match.
        wanted = next((r for r in term.selector.requirements if r.operator == "In"), None)
        if wanted is None:
            self._others.append(position)
            return
        for value in dict.fromkeys(wanted.values):
            self._by_label.setdefault((wanted.key, value), []).append(position)

    def looks(self, row: int) -> Looks:
        """Return what the terms read of the task. The same terms are about all tasks with an equal result."""
        if not self._terms:
            return ()
        pod = self._index.tables.tasks.pods[row]
        return (pod.namespace, *sorted(label for label in pod.labels.items() if label[0] in self._keys))

    def about(self, row: int) -> tuple[ExistingTerm, ...]:
        """Return the terms that are about the task."""
        if not self._terms:
            return ()
        looks = self.looks(row)
        found = self._about.get(looks)
        if found is None:
            pod = self._index.tables.tasks.pods[row]
            near = [i for label in pod.labels.items() for i in self._by_label.get(label, ())]
            # Sorted, so that the order does not depend on which index found a term.
            several = sorted({*near, *self._others})
            found = self._about[looks] = self._together([i for i in several if means(self._terms[i][0], pod)], looks)
        return found

    def _together(self, positions: list[int], looks: Looks) -> tuple[ExistingTerm, ...]:
        """Combine terms with the same topology key and weight."""
        owners: dict[tuple[str, int], list[AnyArray]] = {}
        for i in positions:
            term, weight = self._terms[i]
            owners.setdefault((term.topology_key, weight), []).append(self._owners[i])
        return tuple(
            ExistingTerm(
                key, self._index.of_rows((self._what, looks, key, weight), np.sort(np.concatenate(rows))), weight
            )
            for (key, weight), rows in owners.items()
        )

    def about_class(self, cls: int) -> bool:
        """Return True if a term is about some task of the class."""
        if not self._terms:
            return False
        found = self._about_class.get(cls)
        if found is None:
            rows = self._index.of_classes((cls,)).rows.tolist()
            found = self._about_class[cls] = any(self.about(row) for row in rows)
        return found
