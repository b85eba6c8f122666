"""Many selectors at once against one pod: which of them match its labels?

Each distinct requirement is evaluated once, by looking up the labels that the pod has, and not once for each selector.
Selectors come from tenants: thousands of different ones may be matched with thousands of pods in one cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pumice.algorithms.selectors import holds
from pumice.columns.dtypes import Bool
from pumice.model.pod import LabelSelector, Requirement


class SelectorIndex:
    """The requirements of some selectors, S of them, by the labels that change their answers."""

    def __init__(self, selectors: Sequence[LabelSelector]) -> None:
        numbers: dict[Requirement, int] = {}
        lists = [[numbers.setdefault(r, len(numbers)) for r in each.requirements] for each in selectors]
        # A requirement that always holds closes each list: ``reduceat`` knows no empty lists.
        self._flat = np.array([n for each in lists for n in (*each, len(numbers))], dtype=np.int64)
        self._begins = np.cumsum([0, *(len(each) + 1 for each in lists)], dtype=np.int64)[:-1]
        #: What each requirement says about a pod without its label.
        self._without = np.array([*(holds(each, {}) for each in numbers), True], dtype=bool)
        self._of_value: dict[tuple[str, str], list[int]] = {}
        self._of_key: dict[str, list[tuple[int, Requirement]]] = {}
        for requirement, number in numbers.items():
            self._file(requirement, number)

    def _file(self, requirement: Requirement, number: int) -> None:
        if requirement.operator in ("In", "NotIn"):
            # Only the values that it names change its answer, so all others cost nothing.
            for value in dict.fromkeys(requirement.values):
                self._of_value.setdefault((requirement.key, value), []).append(number)
        else:
            self._of_key.setdefault(requirement.key, []).append((number, requirement))

    def matching(self, labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> Bool:
        """Return which selectors match a pod with these labels. Shape (S,)."""
        if not len(self._begins):
            return np.zeros(0, dtype=bool)
        ok, given = self._without.copy(), dict(labels)
        for label in given.items():
            named = self._of_value.get(label)
            if named:
                ok[named] = ~self._without[named]
            for number, requirement in self._of_key.get(label[0], ()):
                ok[number] = holds(requirement, given)
        found: Bool = np.logical_and.reduceat(ok[self._flat], self._begins)
        return found
