"""The nodes that members of a hypernode select: by exact name, by pattern, or by label.

Source: Volcano ``GetMembers``. An exact name counts whether or not there is such a node. An empty label selector and an
invalid pattern select nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import numpy as np

from pumice.algorithms.patterns import PatternError, compile_pattern
from pumice.columns.dtypes import I32
from pumice.model.pod import LabelSelector
from pumice.model.selectors import matches
from pumice.model.topology import HyperNodeMember


class NodeDirectory:
    """The nodes of one snapshot, indexed by name, by prefix of the name, and by label."""

    # Indices are made when the first member needs them, and kept: a cluster has thousands of members and few patterns.

    def __init__(self, names: Sequence[str], labels: Sequence[Mapping[str, str]]) -> None:
        self._row_of = {name: row for row, name in enumerate(names)}
        self._labels = dict(zip(names, labels, strict=True))
        self._sorted: list[str] | None = None
        self._by_pattern: dict[str, frozenset[str]] = {}
        self._by_label: dict[str, dict[str, list[str]]] = {}

    def rows(self, names: Iterable[str]) -> I32:
        """Return the rows of those names that are nodes, ascending."""
        row_of = self._row_of
        return np.array(sorted(row_of[name] for name in names if name in row_of), dtype=np.int32)

    def names(self, members: Iterable[HyperNodeMember]) -> set[str]:
        """Return the names that members of type Node select."""
        found: set[str] = set()
        for member in members:
            if member.type == "Node":
                found.update(self.names_of(member))
        return found

    def names_of(self, member: HyperNodeMember) -> Iterable[str]:
        """Return the names that one member selects."""
        if member.exact is not None:
            return (member.exact,) if member.exact else ()
        if member.regex is not None:
            return self._matching(member.regex)
        return self._selected(member.labels) if member.labels is not None else ()

    def _matching(self, pattern: str) -> frozenset[str]:
        if pattern not in self._by_pattern:
            self._by_pattern[pattern] = frozenset(self._search(pattern))
        return self._by_pattern[pattern]

    def _search(self, text: str) -> Iterable[str]:
        try:
            pattern = compile_pattern(text)
        except PatternError:
            return ()
        # A pattern like ^rack-1-.* can match only names with its literal prefix, which the sorted names find quickly.
        candidates = self._opening_with(pattern.opening) if pattern.anchored else self._row_of
        return filter(pattern.search, candidates)

    def _opening_with(self, text: str) -> Iterable[str]:
        if self._sorted is None:
            self._sorted = sorted(self._row_of)
        names = self._sorted
        ahead = (names[place] for place in range(bisect_left(names, text), len(names)))
        return takewhile(lambda name: name.startswith(text), ahead)

    def _selected(self, selector: LabelSelector) -> Iterable[str]:
        # One ``In`` requirement narrows the nodes down by the index; the whole selector is then checked on those only.
        equal = next((r for r in selector.requirements if r.operator == "In"), None)
        if not selector.requirements:
            return ()
        candidates: Iterable[str] = self._row_of
        if equal is not None:
            by_value = self._values_of(equal.key)
            candidates = (name for value in dict.fromkeys(equal.values) for name in by_value.get(value, ()))
        return (name for name in candidates if matches(selector, self._labels[name]))

    def _values_of(self, key: str) -> dict[str, list[str]]:
        """Return the names of nodes by their value of a label."""
        if key not in self._by_label:
            index: dict[str, list[str]] = {}
            for name, labels in self._labels.items():
                if key in labels:
                    index.setdefault(labels[key], []).append(name)
            self._by_label[key] = index
        return self._by_label[key]
