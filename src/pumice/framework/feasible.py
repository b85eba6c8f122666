"""Where a class of tasks can go, and how good each node is for it.

A class is evaluated over all nodes once a session, then only for node rows that changed since: whoever moves a task
notes the rows in the change log, and each class catches up when it is asked.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.columns.dtypes import EPS, F64, I32, Bool
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.rows import NodeRows
from pumice.columns.views import Node, Task, TaskClass
from pumice.framework.verdict import Code, FitErrors, Unfit, Verdict, histogram

if TYPE_CHECKING:
    from pumice.framework.session import Session

_FIT_REASON = "Insufficient {}"
_OTHER_SHARD = Unfit("node isn't in scheduler node shard", Code.ERROR)


class ClassFit:
    """One class over all nodes (N,), as of ``position`` in the change log.

    ``allowed``: no filter objects. ``idle_fits``/``future_fits``: the request fits what is idle / what will be.
    ``score``: sum of all scores that look at one node alone. ``idle_score`` is the score where the class may be placed
    now, -inf elsewhere. ``next_score``, where the class looks ahead, is the same after one more of the class on each
    node: equal tasks are placed one after the other, and few nodes get more than one of them.
    """

    __slots__ = (
        "_cls",
        "_errors",
        "_errors_at",
        "_ssn",
        "allowed",
        "future_fits",
        "idle_fits",
        "idle_score",
        "looks_ahead",
        "next_score",
        "position",
        "score",
    )

    def __init__(self, ssn: Session, cls: int, *, ahead: bool = False) -> None:
        count = len(ssn.tables.nodes.facts)
        self._ssn = ssn
        self._cls = TaskClass(ssn.tables, cls)
        self.allowed: Bool = np.zeros(count, dtype=bool)
        self.idle_fits: Bool = np.zeros(count, dtype=bool)
        self.future_fits: Bool = np.zeros(count, dtype=bool)
        self.score: F64 = np.zeros(count)
        self.idle_score: F64 = np.full(count, -np.inf)
        self.next_score: F64 = np.full(count, -np.inf)
        self.looks_ahead = ahead
        self._errors: FitErrors | None = None
        self._errors_at = -1
        self.position = ssn.tables.nodes.changed.end()
        self._evaluate(ssn.all_nodes)

    def refresh(self) -> None:
        """Catch up with the rows that changed."""
        log = self._ssn.tables.nodes.changed
        if self.position == len(log.rows):
            return
        changed = np.zeros(len(self.allowed), dtype=bool)
        changed[log.rows[self.position :]] = True
        self.position = log.end()
        self._evaluate(NodeRows(self._ssn.tables, changed.nonzero()[0]))

    def look_ahead(self) -> None:
        """From now on."""
        self.looks_ahead, self.position = True, self._ssn.tables.nodes.changed.end()
        self._evaluate(self._ssn.all_nodes)

    def _evaluate(self, nodes: NodeRows) -> None:
        rows, count = nodes.rows, len(nodes)
        if self.looks_ahead:
            after = np.zeros(2 * count)
            after[count:] = 1.0
            nodes = NodeRows(nodes.tables, np.concatenate((rows, rows)), after=after, cls=self._cls.row)
        allowed, idle_fits, future_fits, score = self.look(nodes)
        idle_score = np.where(allowed & idle_fits, score, -np.inf)
        if self.looks_ahead:
            self.next_score[rows], idle_score = idle_score[count:], idle_score[:count]
            allowed, idle_fits, future_fits = allowed[:count], idle_fits[:count], future_fits[:count]
            score = score[:count]
        self.allowed[rows] = allowed
        self.idle_fits[rows] = idle_fits
        self.future_fits[rows] = future_fits
        self.score[rows] = score
        self.idle_score[rows] = idle_score

    def look(self, nodes: NodeRows) -> tuple[Bool, Bool, Bool, F64]:
        """allowed, idle_fits, future_fits and score for some rows, which may be virtual."""
        ssn, cls = self._ssn, self._cls
        idle_fits = nodes.has_room(cls.row, IDLE)
        future_fits = nodes.has_room(cls.row, FUTURE) if ssn.futures_differ else idle_fits
        passes: list[Bool] = [_codes(hook, cls, nodes) == 0 for hook in ssn.class_predicates]
        scores: list[F64] = [scorer(cls, nodes) for scorer in ssn.class_scores]
        allowed = reduce(np.logical_and, passes) if passes else np.ones(len(nodes), dtype=bool)
        score: F64 = reduce(np.add, scores, np.zeros(len(nodes)))
        return allowed, idle_fits, future_fits, score

    def errors(self) -> FitErrors:
        """Why no node takes the class right now, by the filters that look at a class. Kept until a node changes."""
        if self._errors is None or self._errors_at != self.position:
            self._errors = fit_errors(self._ssn, self._cls, self._ssn.all_nodes, [])
            self._errors_at = self.position
        return self._errors


def _codes(hook: Any, cls: TaskClass, nodes: NodeRows) -> I32:
    verdict = hook(cls, nodes)
    codes: I32 = verdict.codes
    return codes


def shortage(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Verdict:
    """Which dimension is short first, against what will be free. Shape (rows,)."""
    needed = ssn.tables.classes.compared[cls.row]
    short = (cls.req - nodes.future >= EPS) & needed
    first = np.where(short.any(axis=1), short.argmax(axis=1) + 1, 0)
    return Verdict(first.astype(np.int32), _shortages(ssn.tables.axis.names))


@lru_cache(maxsize=16)
def _shortages(names: tuple[str, ...]) -> tuple[tuple[Unfit, ...], ...]:
    return ((), *((Unfit(_FIT_REASON.format(name)),) for name in names))


@lru_cache(maxsize=1024)
def _worst(reasons: tuple[Unfit, ...]) -> Code:
    return max((unfit.code for unfit in reasons), default=Code.SUCCESS)


def fit_errors(
    ssn: Session,
    cls: TaskClass,
    nodes: NodeRows,
    task_verdicts: list[Verdict],
    hypernode: str = "",
    *,
    resources: bool = True,
) -> FitErrors:
    """The reasons against every row: the shard and resources first, then the first filter that objects.

    ``task_verdicts`` are the answers of hooks that look at the single task, for the same rows. ``resources`` False:
    nobody looked at them (backfill).
    """
    verdicts = [hook(cls, nodes) for hook in ssn.class_predicates] + task_verdicts
    if resources:
        verdicts.insert(0, shortage(ssn, cls, nodes))
    if ssn.shard_mask is not None and ssn.snapshot.shard is not None and ssn.snapshot.shard.hard:
        verdicts.insert(0, Verdict.of(ssn.shard_mask[nodes.rows], _OTHER_SHARD))
    first = np.zeros(len(nodes), dtype=np.int64)
    code = np.zeros(len(nodes), dtype=np.int64)
    why: list[tuple[Unfit, ...]] = [()]
    for verdict in verdicts:
        fresh = (first == 0) & (verdict.codes > 0)
        code[fresh] = verdict.codes[fresh] + len(why) - 1
        first[fresh] = 1
        why += verdict.why[1:]
    counts = np.bincount(code, minlength=len(why)).tolist()
    worst = np.array([_worst(reasons) for reasons in why], dtype=np.int8)
    return FitErrors(
        histogram((why[i], counts[i]) for i in range(1, len(why)) if counts[i]),
        len(nodes),
        hypernode=hypernode,
        node_rows=np.asarray(nodes.rows, dtype=np.int32),
        codes=worst[code],
    )


class Feasibility:
    """The classes looked at in this session."""

    __slots__ = ("_fits", "_ssn")

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._fits: dict[int, ClassFit] = {}

    def of(self, cls: int, *, ahead: bool = False) -> ClassFit:
        """The class, caught up; ``ahead``: with what comes after one more."""
        fit = self._fits.get(cls)
        if fit is None:
            fit = self._fits[cls] = ClassFit(self._ssn, cls, ahead=ahead)
        elif ahead and not fit.looks_ahead:
            fit.look_ahead()
        else:
            fit.refresh()
        return fit


def rows_hook(ssn: Session, form: str, hook: Any, *, filters: bool) -> Any:
    """A hook written one node at a time, as a hook over rows: one contract, two ways to write it."""
    if form in ("class", "task"):
        return hook

    def over_rows(subject: TaskClass | Task, nodes: NodeRows) -> Any:
        assert nodes.is_real, "a hook for one node cannot look at nodes as they would be"
        if not filters:
            return np.array([hook(subject, Node(ssn.tables, row)) for row in nodes.rows.tolist()], dtype=np.float64)
        why: list[tuple[Unfit, ...]] = [()]
        codes = np.zeros(len(nodes), dtype=np.int32)
        for i, row in enumerate(nodes.rows.tolist()):
            unfit = hook(subject, Node(ssn.tables, row))
            if unfit is not None:
                codes[i] = len(why)
                why.append((unfit,))
        return Verdict(codes, tuple(why))

    return over_rows
