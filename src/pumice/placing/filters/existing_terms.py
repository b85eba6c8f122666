"""Terms of pods that are placed or may be, from the side of the incoming pod: which of them are about it?

Pods of a job look equal to a selector, so answers are kept by namespace and by the labels that the terms read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import AnyArray, Bool
from pumice.model.pod import LabelSelector, PodAffinityTerm, PodSpec
from pumice.placing.filters.pods import PodIndex, PodSet, classes_where, covers, means
from pumice.placing.filters.selector_index import SelectorIndex

Weighted = tuple[PodAffinityTerm, int]
#: The namespace of a task and those of its labels that terms read; empty if there are no terms.
Looks = tuple[str | tuple[str, str], ...]

_EMPTY = LabelSelector(())
#: So many terms are matched one by one, which is quicker than to match all terms at once.
_FEW = 16


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
        # Equal terms of many classes are one: a deployment's pods differ in nothing that a term says.
        classes_of: dict[Weighted, list[int]] = {}
        for cls in classes_where(index.ssn, what, lambda spec: any(True for _ in terms_of(spec))):
            for weighted in terms_of(tables.classes.specs[cls]):
                if not index.derived.label(weighted[0].topology_key).values:
                    continue  # no node is in a domain
                classes_of.setdefault(weighted, []).append(cls)  # a spec may say the same thing twice: it counts twice
        self._terms = list(classes_of)
        owners = [index.rows_of_classes(classes) for classes in classes_of.values()]
        #: Pods that have a term, with the number of the term, term after term.
        self._owners: AnyArray = np.concatenate([np.zeros(0, dtype=np.int64), *owners])
        self._term_of = np.repeat(np.arange(len(owners)), [len(rows) for rows in owners])
        #: Each topology key with each weight, and which of them a term has.
        kinds: dict[tuple[str, int], int] = {}
        self._kind_of = np.array([kinds.setdefault((t.topology_key, w), len(kinds)) for t, w in self._terms], np.int64)
        self._kinds = list(kinds)
        self._keys: set[str] = set()  # labels that the terms look at
        self._by_label: dict[tuple[str, str], list[int]] = {}  # terms that want this label
        self._others: list[int] = []
        for i, (term, _) in enumerate(self._terms):
            self._file(i, term)
        self._selectors = SelectorIndex([term.selector or _EMPTY for term, _ in self._terms])
        self._covering: dict[str, Bool] = {}  # by namespace: which terms are about its pods
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
            near = dict.fromkeys(i for label in pod.labels.items() for i in self._by_label.get(label, ()))
            if len(near) + len(self._others) > _FEW:
                chosen = self._covers(pod.namespace) & self._selectors.matching(pod.labels)
            else:
                chosen = np.zeros(len(self._terms), dtype=bool)
                chosen[[i for i in (*near, *self._others) if means(self._terms[i][0], pod)]] = True
            found = self._about[looks] = self._together(chosen, looks)
        return found

    def _covers(self, namespace: str) -> Bool:
        """Return which terms are about pods of a namespace, whatever their labels. Shape (terms,)."""
        found = self._covering.get(namespace)
        if found is None:
            covered = [term.selector is not None and covers(term, namespace) for term, _ in self._terms]
            found = self._covering[namespace] = np.array(covered, dtype=bool)
        return found

    def _together(self, chosen: Bool, looks: Looks) -> tuple[ExistingTerm, ...]:
        """Combine chosen terms (terms,) with the same topology key and weight."""
        rows, of = self._owners[chosen[self._term_of]], self._kind_of[self._term_of[chosen[self._term_of]]]
        found = []
        # In the order of the first chosen term of each kind.
        for kind in dict.fromkeys(self._kind_of[chosen].tolist()):
            key, weight = self._kinds[kind]
            owners = self._index.of_rows((self._what, looks, key, weight), np.sort(rows[of == kind]))
            found.append(ExistingTerm(key, owners, weight))
        return tuple(found)

    def about_class(self, cls: int) -> bool:
        """Return True if a term is about some task of the class."""
        if not self._terms:
            return False
        found = self._about_class.get(cls)
        if found is None:
            rows = self._index.of_classes((cls,)).rows.tolist()
            found = self._about_class[cls] = any(self.about(row) for row in rows)
        return found
