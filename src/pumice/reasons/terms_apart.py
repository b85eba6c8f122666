"""Terms by which pods on nodes keep other pods away: which of them are about a pod that waits?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.model.pod import PodAffinityTerm
from pumice.model.selectors import matches


class TermsApart:
    """The selectors of these terms, each once. ``selectors``: in the order of the terms."""

    def __init__(self, terms: Iterable[PodAffinityTerm]) -> None:
        self.selectors = list(dict.fromkeys(term.selector for term in terms if term.selector is not None))
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._others: list[int] = []
        for number, selector in enumerate(self.selectors):
            # Any one required label will do: a pod without it cannot match.
            wanted = next((each for each in selector.requirements if each.operator == "In"), None)
            if wanted is None:
                self._others.append(number)
                continue
            for value in dict.fromkeys(wanted.values):
                self._by_label.setdefault((wanted.key, value), []).append(number)

    def about(self, labels: Mapping[str, str]) -> tuple[int, ...]:
        """Return the numbers of the selectors that take a pod with these labels, in order."""
        # By label, because each of thousands of jobs is asked about, and each may have a term of its own.
        near = {number for label in labels.items() for number in self._by_label.get(label, ())}
        return tuple(each for each in sorted(near.union(self._others)) if matches(self.selectors[each], labels))
