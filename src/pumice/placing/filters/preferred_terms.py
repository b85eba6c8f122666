"""Score nodes by preferred affinity between pods: the pod's own, and that of existing pods to it.

Source: kube-scheduler InterPodAffinity (1.36). A required affinity of an existing pod counts as a preference of weight
``HARD_POD_AFFINITY_WEIGHT``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, I64, AnyArray
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.incremental import ScoreInTurn, equal_prefix_length
from pumice.model.pod import PodSpec
from pumice.placing.filters.existing_terms import ExistingTerms, Looks, Weighted
from pumice.placing.filters.pods import PodIndex, PodSet

#: Default of kube-scheduler.
HARD_POD_AFFINITY_WEIGHT = 1

#: By topology key: sets of pods, and the weight of being in a domain with each of these pods.
_PreferredTerms = tuple[tuple[str, list[tuple[PodSet, int]]], ...]


def _own_terms(spec: PodSpec) -> Iterator[Weighted]:
    for term in spec.affinity.pod_preferred:
        yield term, term.weight
    for term in spec.affinity.anti_preferred:
        yield term, -term.weight


def _existing_terms(spec: PodSpec) -> Iterator[Weighted]:
    if HARD_POD_AFFINITY_WEIGHT:
        for term in spec.affinity.pod_required:
            yield term, HARD_POD_AFFINITY_WEIGHT
    yield from _own_terms(spec)


class InterPodScore:
    """Scores nodes for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._existing = ExistingTerms(index, "preferred terms about pods", _existing_terms)
        self._preferred: dict[tuple[int, Looks], _PreferredTerms] = {}

    def concerns(self, cls: int) -> bool:
        """Return True if the class has preferences, or an existing pod has one about its tasks."""
        return any(True for _ in _own_terms(self._index.tables.classes.specs[cls])) or self._existing.about_class(cls)

    def score(self, task: Task, nodes: NodeRows) -> F64:
        """Return scores from 0 to 100, for the least and the most preferred candidate, all 0 if they are equal. Shape
        (rows,)."""
        raw: I64 | None = None
        for key, weighted in self._preferred_for(task.cls.row, task.row, self._existing.looks(task.row)):
            found = self._by_domain(key, weighted)[nodes.pick(self._index.derived.label(key).codes)]
            raw = found if raw is None else raw + found
        return _scaled(raw, len(nodes))

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn:
        """Return an incremental score for tasks of one class that are placed one after the other."""
        looks = [self._existing.looks(row) for row in tasks.rows.tolist()]
        keys = []
        for key, weighted in self._preferred_for(tasks.classes[0], int(tasks.rows[0]), looks[0]):
            domains = nodes.pick(self._index.derived.label(key).domain_of[:-1])
            joins = np.array([pods.joined_by(tasks) for pods, _ in weighted]).T @ [weight for _, weight in weighted]
            keys.append(_KeyInTurn(domains, self._by_domain(key, weighted), joins.tolist()))
        count = equal_prefix_length(looks)
        return _OneKeyInTurn(keys[0], count) if len(keys) == 1 else _PreferredTermsInTurn(keys, count)

    def _by_domain(self, key: str, weighted: list[tuple[PodSet, int]]) -> I64:
        """Return the weight of each domain. Shape (D + 1,)."""
        by_domain = np.zeros(len(self._index.derived.label(key).values) + 1, dtype=np.int64)
        for pods, weight in weighted:
            by_domain += weight * pods.per_domain(key)
        return by_domain

    def _preferred_for(self, cls: int, row: int, looks: Looks) -> _PreferredTerms:
        """Return the weighted sets of pods for tasks of a class that look equal, cached."""
        preferred = self._preferred.get((cls, looks))
        if preferred is None:
            preferred = self._preferred[cls, looks] = self._preferred_of(cls, row)
        return preferred

    def _preferred_of(self, cls: int, row: int) -> _PreferredTerms:
        """Return the weighted sets of pods by topology key."""
        found: dict[str, list[tuple[PodSet, int]]] = {}
        for term, weight in _own_terms(self._index.tables.classes.specs[cls]):
            found.setdefault(term.topology_key, []).append((self._index.matching((term,)), weight))
        for existing in self._existing.about(row):
            found.setdefault(existing.topology_key, []).append((existing.owners, existing.weight))
        return tuple(found.items())


class _KeyInTurn(NamedTuple):
    """The state of one topology key. ``domains`` (rows,): domains of the nodes. ``weight`` (D + 1,): weight of each
    domain. ``adds``: what the task of a step adds to its domain."""

    domains: I64
    weight: I64
    adds: list[int]

    def placed(self, step: int, place: int) -> bool:
        """Place the task of a step. Return True if that changes anything."""
        domain = self.domains[place]
        # The last entry is for nodes without the label, which are in no domain.
        if not self.adds[step] or domain == len(self.weight) - 1:
            return False
        self.weight[domain] += self.adds[step]
        return True


class _PreferredTermsInTurn(ScoreInTurn):
    """The score for tasks that are placed one after the other."""

    def __init__(self, keys: list[_KeyInTurn], count: int) -> None:
        self._keys, self.count = keys, count

    def score(self, step: int, places: AnyArray) -> F64:
        raw: I64 | None = None
        for domains, weight, _ in self._keys:
            found = weight[domains[places]]
            raw = found if raw is None else raw + found
        return _scaled(raw, len(places))

    def placed(self, step: int, place: int) -> bool:
        # A list, so that each key is notified even if the first one changes.
        changes = [key.placed(step, place) for key in self._keys]
        return any(changes)


class _OneKeyInTurn(ScoreInTurn):
    """The score for terms with one topology key, which is the usual case: scaled per domain.

    ``here`` (D + 1,): domains of the candidates. ``scores`` (D + 1,): scores of these.
    """

    def __init__(self, key: _KeyInTurn, count: int) -> None:
        self._key, self.count = key, count
        self._here = np.zeros(len(key.weight), dtype=bool)
        self._scores = np.zeros(len(key.weight))

    def score(self, step: int, places: AnyArray) -> F64:
        domains = self._key.domains[places]
        self._here[:] = False
        self._here[domains] = True
        self._scores = self._scores_here()
        return self._scores[domains]

    def _scores_here(self) -> F64:
        found = np.zeros(len(self._here))
        found[self._here] = _scaled(self._key.weight[self._here], 0)
        return found

    def placed(self, step: int, place: int) -> bool:
        # A changed weight often leaves the scaled scores equal, and then nothing needs to be scored again.
        return self._key.placed(step, place) and bool((self._scores != self._scores_here()).any())


def _scaled(raw: I64 | None, count: int) -> F64:
    """Scale raw scores to 0 to 100."""
    if raw is None or not len(raw):
        return np.zeros(count)
    low = raw.min()
    spread = float(raw.max() - low)
    # Equal candidates, and a division by 0 otherwise.
    if not spread:
        return np.zeros(len(raw))
    # Rounded down as in kube-scheduler, which converts to an integer.
    found: F64 = np.floor(100.0 * ((raw - low) / spread))
    return found
