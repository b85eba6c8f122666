"""What a filter says about nodes, and what prevents the placement of a task or a job."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I8, I32, Bool
from pumice.model.blockers import Blocker, NodeFilter, SearchCut, Shortage
from pumice.model.blockers.changes import Change


# The numbers are kube-scheduler's, so that codes in recorded cases of Volcano can be read as they are.
class Code(IntEnum):
    """Status codes of a filter. Source: kube-scheduler."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3  # UnschedulableAndUnresolvable
    WAIT = 4
    SKIP = 5


class Unfit(Struct, frozen=True):
    """One reason. ``resource``: the one of which there is too little. ``steps``: those of a search that was cut, so
    that the node may fit. ``blocker``: the reason as a value, where a hook at ``allocatable`` has one; the trace keeps
    it in place of the text. ``changes``: those after which a node would not refuse, if they are known."""

    reason: str
    code: Code = Code.UNSCHEDULABLE
    resource: str = ""
    steps: int = 0
    blocker: Blocker | None = None
    changes: tuple[Change, ...] = ()


class Invalid(Struct, frozen=True):
    """Why a job cannot be complete, whatever is placed. ``blocker``: the reason with its numbers, if there are any."""

    reason: str
    message: str
    blocker: Blocker | None = None


class FilterResult(Struct, frozen=True):
    """Reasons per node: ``why[codes[i]]`` are those against node i; code 0 means none. Shape (rows,)."""

    codes: I32
    why: tuple[tuple[Unfit, ...], ...]

    @staticmethod
    def of(fits: Bool, unfit: Unfit) -> FilterResult:
        """Return a result with one reason against every row where ``fits`` is False."""
        return FilterResult((~fits).astype(np.int32), ((), (unfit,)))

    def changes_of_most(self, rows: Bool) -> tuple[Change, ...]:
        """Return what would help against the most frequent reason against some rows, empty if that is not known.
        ``rows`` (rows,)."""
        codes = self.codes[rows]
        reasons = self.why[int(np.bincount(codes).argmax())] if len(codes) else ()
        return next((unfit.changes for unfit in reasons if unfit.changes), ())

    def is_about(self, count: int) -> bool:
        """Return True if it is usable as the answer about so many rows: each has the code of one of the reasons."""
        # A plugin may have put anything there, whatever the types of the fields say.
        codes: object = self.codes
        why: tuple[object, ...] = self.why
        if not isinstance(codes, np.ndarray) or codes.shape != (count,) or codes.dtype.kind not in "iu":
            return False
        # One reduction in place of two, since this is asked often: seen as unsigned, a code below 0 is a large one.
        if count and np.maximum.reduce(codes.view(_UNSIGNED[codes.itemsize])) >= len(why):
            return False
        for reasons in why:
            if not isinstance(reasons, tuple):
                return False
            for each in reasons:
                if not isinstance(each, Unfit):
                    return False
        return True


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


#: Answers of filters, each with the number of its hook among all that were asked.
ByHook = list[tuple[int, FilterResult]]


# All reasons are kept and not only the first, since users see counts by reason (Volcano's FitErrors), and a node may
# fail several filters.
def gather(filter_results: Sequence[FilterResult], count: int) -> FilterResult:
    """Return all reasons of several filters together, in their order. Shape (count,)."""
    # Most tasks have one filter with objections, and no numbers must be mixed then.
    if len(filter_results) == 1:
        return filter_results[0]
    codes = np.zeros(count, dtype=np.int64)
    for filter_result in filter_results:
        # Each combination of reasons becomes one number, so that it is put together once and not once per node.
        codes = codes * len(filter_result.why) + filter_result.codes
    distinct, inverse = np.unique(codes, return_inverse=True)
    why: list[tuple[Unfit, ...]] = [()]
    renumber = np.zeros(len(distinct), dtype=np.int32)
    for i, mixed in enumerate(distinct.tolist()):
        reasons: tuple[Unfit, ...] = ()
        # In reverse, because the last filter is the lowest digit of the number.
        for filter_result in reversed(filter_results):
            mixed, code = divmod(mixed, len(filter_result.why))
            reasons = filter_result.why[code] + reasons
        if reasons:
            renumber[i] = len(why)
            why.append(reasons)
    return FilterResult(renumber[inverse].astype(np.int32), tuple(why))


class FitErrors(Struct, frozen=True, eq=False):
    """Why one task found no node: the objections to nodes, or a message of its own.

    ``against``: each reason with the number of nodes. Equal tasks share it, so a ``Shortage`` in it is about one pod.
    ``node_rows`` and ``codes``: for each node that was examined, its worst code, which later evictions use.
    ``hypernode``: the one in which the task had to be placed. ``skipped``: the task was not tried because another one
    of its role had failed.
    """

    # Counts and not nodes: a thousand equal tasks share this object, and a text names no single node.
    against: tuple[NodeFilter | SearchCut | Shortage, ...] = ()
    node_count: int = 0
    message: str = ""
    hypernode: str = ""
    node_rows: I32 | None = None
    codes: I8 | None = None
    skipped: bool = False

    def __eq__(self, other: object) -> bool:
        # Equal if users read the same. Free amounts change with every placement, and comparing them would make each
        # failure a new one.
        return isinstance(other, FitErrors) and (self.said, self.skipped) == (other.said, other.skipped)

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    @staticmethod
    def everywhere(unfit: Unfit, node_count: int, plugin: str = "") -> FitErrors:
        """Return the errors of a task for which a plugin refuses every node."""
        if unfit.steps:
            return FitErrors((SearchCut(plugin, unfit.steps, node_count, unfit.reason),), node_count)
        if not (node_count and unfit.reason):
            return FitErrors((), node_count)
        return FitErrors((NodeFilter(plugin, node_count, node_count, unfit.reason, unfit.changes),), node_count)

    @property
    def said(self) -> tuple[object, ...]:
        """All that a user may read of it, as one value. Amounts of free resources are not part of it."""
        # Sorted, since reasons with equal counts may have been found in another order.
        return tuple(sorted(map(_in_short, self.against))), self.node_count, self.message, self.hypernode


def _in_short(each: NodeFilter | SearchCut | Shortage) -> tuple[str, str, int]:
    """Return plugin, reason and number of nodes."""
    if isinstance(each, Shortage):
        return "", each.resource, each.nodes
    if isinstance(each, SearchCut):
        return each.action, each.detail, each.nodes
    return each.plugin, each.detail, each.nodes
