"""What a filter says about nodes, and what stands against a task or a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from pumice.columns.dtypes import I8, I32, Bool
from pumice.model.blockers import Blocker


class Code(IntEnum):
    """Status codes of a filter. Source: kube-scheduler."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3  # UnschedulableAndUnresolvable
    WAIT = 4
    SKIP = 5


class Unfit(Struct, frozen=True):
    """One reason against. ``resource``: of which there is too little."""

    reason: str
    code: Code = Code.UNSCHEDULABLE
    resource: str = ""


class Invalid(Struct, frozen=True):
    """Why a job cannot be complete, whatever is placed. ``blocker``: the same with its numbers, where there are any."""

    reason: str
    message: str
    blocker: Blocker | None = None


class FilterResult(Struct, frozen=True):
    """Reasons per node: ``why[codes[i]]`` stands against node i; code 0 is none. Shape (rows,)."""

    codes: I32
    why: tuple[tuple[Unfit, ...], ...]

    @staticmethod
    def of(fits: Bool, unfit: Unfit) -> FilterResult:
        """One reason against every row where ``fits`` is False."""
        return FilterResult((~fits).astype(np.int32), ((), (unfit,)))


#: Answers of filters, each with the number of its hook among all that were asked.
ByHook = list[tuple[int, FilterResult]]


def gather(filter_results: Sequence[FilterResult], count: int) -> FilterResult:
    """All reasons of several filters together, in their order. Shape (count,)."""
    if len(filter_results) == 1:
        return filter_results[0]
    codes = np.zeros(count, dtype=np.int64)
    for filter_result in filter_results:
        codes = codes * len(filter_result.why) + filter_result.codes
    distinct, inverse = np.unique(codes, return_inverse=True)
    why: list[tuple[Unfit, ...]] = [()]
    renumber = np.zeros(len(distinct), dtype=np.int32)
    for i, mixed in enumerate(distinct.tolist()):
        reasons: tuple[Unfit, ...] = ()
        for filter_result in reversed(filter_results):
            mixed, code = divmod(mixed, len(filter_result.why))
            reasons = filter_result.why[code] + reasons
        if reasons:
            renumber[i] = len(why)
            why.append(reasons)
    return FilterResult(renumber[inverse].astype(np.int32), tuple(why))


class Objection(NamedTuple):
    """One reason against so many nodes. ``plugin``: empty for a rule of the core, such as too little room."""

    unfit: Unfit
    nodes: int
    plugin: str = ""


class FitErrors(Struct, frozen=True, eq=False):
    """Why one task found no node: a histogram of reasons over nodes, or a message of its own.

    ``node_rows`` and ``codes`` say for each node that was looked at how bad it is, for later eviction. ``hypernode``:
    the one it had to be in. ``objections``: each reason, on how many nodes, and by which plugin. ``skipped``: the task
    was not tried, since one of its role had failed.
    """

    histogram: Mapping[str, int] = field(default_factory=Counter)
    node_count: int = 0
    message: str = ""
    hypernode: str = ""
    node_rows: I32 | None = None
    codes: I8 | None = None
    skipped: bool = False
    objections: tuple[Objection, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FitErrors) and _COMPARED(self) == _COMPARED(other)

    __hash__ = None  # type: ignore[assignment]  # a histogram has none

    @staticmethod
    def everywhere(unfit: Unfit, node_count: int, plugin: str = "") -> FitErrors:
        """A reason that a plugin has against every node."""
        counts = Counter({unfit.reason: node_count} if node_count else {})
        return FitErrors(counts, node_count, objections=(Objection(unfit, node_count, plugin),))

    @property
    def said(self) -> tuple[object, ...]:
        """All that a user may read of it, as one value."""
        return tuple(sorted(self.histogram.items())), self.node_count, self.message, self.hypernode


_COMPARED = attrgetter("histogram", "node_count", "message", "hypernode", "skipped")


def histogram(filter_results: Iterable[tuple[tuple[Unfit, ...], int]]) -> Counter[str]:
    """Reasons counted over nodes, from (reasons, number of nodes) pairs."""
    counts: Counter[str] = Counter()
    for reasons, times in filter_results:
        for unfit in reasons:
            if unfit.reason:
                counts[unfit.reason] += times
    return counts
