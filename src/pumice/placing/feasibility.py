"""Where tasks of a class can go, and how good each node is for them.

A class is evaluated over all nodes once, and then only over rows of nodes that have changed, which their stamps tell.
What was found is kept in the memo like any other answer, also from one cycle to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import floor, inf
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool, ResourceAxis, read_only
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.rows import ClassRows, NodeRows
from pumice.columns.snapshot import Shard
from pumice.columns.views import Task, TaskClass
from pumice.framework.cycle.world import World
from pumice.framework.memo import Ground, Memo, ground
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import Code, FilterResult, FitErrors, Unfit
from pumice.framework.plugin.hooks import At, Hooks
from pumice.framework.plugin.point import ROWS
from pumice.framework.plugin.resolution import Reading
from pumice.model.blockers import NodeFilter, SearchCut, Shortage
from pumice.model.resources import Resource

_FIT_REASON = "Insufficient {}"
_OTHER_SHARD = Unfit("node isn't in scheduler node shard", Code.ERROR)
_QUARANTINED = Unfit("node(s) hold what cannot be read", Code.UNRESOLVABLE)
#: Flags, scores and stamps of a ClassFit, in bytes per node.
_BYTES_A_NODE = 3 + 3 * 8 + 8


class Look(NamedTuple):
    """What nodes are for a class, each array (rows,). ``allowed``: no filter objects. ``idle_fits`` and
    ``future_fits``: the request fits what is idle, or what will be. ``score``: sum of all scores that look at one node
    alone."""

    allowed: Bool
    idle_fits: Bool
    future_fits: Bool
    score: F64

    def part(self, rows: slice) -> Look:
        """Return some of the rows, as views of the same memory."""
        return Look(self.allowed[rows], self.idle_fits[rows], self.future_fits[rows], self.score[rows])

    def where_idle(self) -> F64:
        """Return the score where the class may be placed now, and -inf elsewhere. Shape (rows,)."""
        return np.where(self.allowed & self.idle_fits, self.score, -np.inf)


class ClassFit(NamedTuple):
    """One class over all nodes (N,), as of ``seen``, the stamps of nodes, and ``moved``, the versions of what moves
    there.

    It is a value, which is replaced and never changed. The first four arrays are as in ``Look``. ``idle_score``: the
    score where the class may be placed now, -inf elsewhere. ``next_score``: the ``idle_score`` after one more task on
    each node, or None if it was not requested; equal tasks are placed one after the other, and few nodes take more than
    one of them.
    """

    cls: int
    allowed: Bool
    idle_fits: Bool
    future_fits: Bool
    score: F64
    idle_score: F64
    next_score: F64 | None
    seen: I64
    moved: Ground

    @classmethod
    def of(cls, number: int, look: Look, after: Look | None, seen: I64, moved: Ground) -> ClassFit:
        """Return a class from how all nodes look, and how they would after one more task."""
        # Read-only, because the memo returns these same arrays to later callers, also in later cycles.
        allowed, idle_fits, future_fits, score = map(read_only, look)
        next_score = None if after is None else read_only(after.where_idle())
        idle_score = read_only(look.where_idle())
        return cls(number, allowed, idle_fits, future_fits, score, idle_score, next_score, seen, moved)

    def with_rows(self, rows: AnyArray, look: Look, after: Look | None, seen: I64, moved: Ground) -> ClassFit:
        """Return this class with other values in some rows."""
        return ClassFit(
            self.cls,
            _replaced(self.allowed, rows, look.allowed),
            _replaced(self.idle_fits, rows, look.idle_fits),
            _replaced(self.future_fits, rows, look.future_fits),
            _written(self.score, rows, look.score),
            _written(self.idle_score, rows, look.where_idle()),
            None if self.next_score is None or after is None else _written(self.next_score, rows, after.where_idle()),
            seen,
            moved,
        )


def _replaced(whole: AnyArray, rows: AnyArray, part: AnyArray) -> AnyArray:
    """Return an array with other values in some rows, or the same object if they are equal."""
    # Flags change rarely, so in most cases no array is copied.
    return whole if part.tobytes() == whole[rows].tobytes() else _written(whole, rows, part)


def _written(whole: AnyArray, rows: AnyArray, part: AnyArray) -> AnyArray:
    """Return a copy with other values in some rows, which cannot be written."""
    found = whole.copy()
    found[rows] = part
    found.setflags(write=False)
    return found


class _Reads(NamedTuple):
    """What hooks about classes and nodes read. ``notified``: plugins of hooks that read more than rows and are notified
    of placements, after which their answers may change although no row does."""

    reading: Reading
    notified: list[str]


def _about_classes(at: At) -> _Reads:
    """Return what hooks about classes read, and the plugins among theirs that are notified of placements."""
    about = [hook for hook in at(*points.ABOUT_NODES) if hook.form in ("class", "class_node")]
    hear = {hook.plugin for hook in at(points.on_allocate, points.on_deallocate)}
    notified = [hook.plugin for hook in about if hook.plugin in hear and (hook.reads is None or ROWS not in hook.reads)]
    return _Reads(Reading.of(about), notified)


class Feasibility:
    """Evaluates classes, and keeps what it finds in the memo.

    ``at_once``: a run of equal tasks may be placed together, because every hook about classes may be asked about rows
    as they would be, and no hook names the best node by itself. ``shard_mask`` (N,): nodes of this scheduler's shard,
    or None without sharding. ``outside`` (N,): nodes that nothing may be placed on because of the shard, or None if
    there are none.
    """

    __slots__ = (
        "_all_columns",
        "_columns",
        "_hooks",
        "_memo",
        "_moving",
        "_some_wait",
        "_tables",
        "_world",
        "all_nodes",
        "at_once",
        "outside",
        "shard_mask",
    )

    def __init__(self, world: World, hooks: Hooks, memo: Memo, shard: Shard | None) -> None:
        self._world, self._hooks, self._memo, self._tables = world, hooks, memo, world.tables
        names = world.tables.nodes.facts.names
        self.all_nodes = NodeRows(world.tables, np.arange(len(names)), whole=True)
        self.shard_mask: Bool | None = None
        self.outside: Bool | None = None
        if shard is not None:
            self.shard_mask = np.array([name in shard.nodes for name in names], dtype=bool)
            self.outside = ~self.shard_mask if shard.hard else None
        reads = hooks.known("feasible", (*points.ABOUT_NODES, points.on_allocate, points.on_deallocate), _about_classes)
        nodes = world.tables.nodes
        # Bookings and columns of plugins change with each placement, and the stamps of rows tell where. Everything else
        # makes the whole answer out of date.
        self._columns = [*reads.reading.columns(world), nodes["quarantined_by"]]
        self._moving = (nodes["books"], nodes["view"], *world.columns_on("node"))
        self._all_columns = (*self._columns, *self._moving)
        self._some_wait = hooks.has(points.waits)
        moves_unseen = any(hooks.keeps_state(world, plugin) for plugin in reads.notified)
        # A shard prefers its own nodes to better ones, which no score expresses; see ``_groups`` in ``choose``.
        self.at_once = shard is None and not hooks.has(points.best_node) and not moves_unseen

    def of(self, cls: int, *, ahead: bool = False) -> ClassFit:
        """Return the class as nodes are now. ``ahead``: with its ``next_score``."""
        question, rests_on = ("fit", cls, self._tables.classes.identity(cls)), self.beside_rows()
        fit: ClassFit | None = self._memo.recall(question, rests_on)
        moved, stamps = ground(*self._moving), self._tables.nodes.stamps
        assert stamps is not None
        # A class that is known without its next_score is evaluated anew: only the rows that changed would get one.
        if fit is None or (ahead and fit.next_score is None):
            fit = ClassFit.of(cls, *self._looks(cls, self.all_nodes, ahead=ahead), stamps.copy(), moved)
        elif fit.moved == moved:
            # Nothing has moved since, so not even stamps must be compared.
            return fit
        else:
            rows = (stamps != fit.seen).nonzero()[0]
            looks = self._looks(cls, NodeRows(self._tables, rows), ahead=fit.next_score is not None)
            fit = fit.with_rows(rows, *looks, stamps.copy(), moved)
        return self._memo.keep(question, rests_on, fit, len(stamps) * _BYTES_A_NODE)

    def everything(self) -> Ground:
        """Return what answers about classes over all nodes rest on."""
        return (self._tables.nodes.facts.version, *ground(*self._all_columns))

    def beside_rows(self) -> Ground:
        """Return what answers about classes rest on, except for the rows of nodes that they are about."""
        return (self._tables.nodes.facts.version, *ground(*self._columns))

    def _looks(self, cls: int, nodes: NodeRows, *, ahead: bool) -> tuple[Look, Look | None]:
        """Return how some rows look, and for ``ahead`` how they would after one more task of the class on each."""
        if not ahead:
            return self.look(cls, nodes), None
        # Both in one call, because a hook costs about the same for twice as many rows.
        count, rows = len(nodes), np.concatenate((nodes.rows, nodes.rows))
        both = self.look(cls, NodeRows(self._tables, rows, after=_none_then_one(count), cls=cls))
        return both.part(slice(count)), both.part(slice(count, None))

    def look(self, cls: int, nodes: NodeRows) -> Look:
        """Return how some rows look for a class. The rows may be hypothetical."""
        handle, ask = TaskClass(self._tables, cls), self._hooks.ask
        idle_fits = nodes.has_room(cls, IDLE)
        future_fits = idle_fits
        if self._world.futures_differ:  # what is idle may be promised to a pod that waits
            future_fits = nodes.has_room(cls, FUTURE)
            idle_fits &= future_fits
        # What a quarantined node has free is not known, since something on it could not be read. Nothing is placed
        # there.
        allowed = self._tables.nodes.quarantined_by[nodes.rows] == 0
        for filter_result in ask(points.class_filters, handle, nodes):
            allowed &= filter_result.codes == 0
        score = ask(points.class_scores, handle, nodes)
        return Look(
            allowed, idle_fits, future_fits, score if isinstance(score, np.ndarray) else np.full(len(nodes), score)
        )

    def fits_some(self, cls: int, nodes: NodeRows) -> bool:
        """Return True if the idle resources of one of the nodes suffice for the class, whatever filters say."""
        return bool(np.count_nonzero(nodes.has_room(cls, IDLE)))

    def look_of_each(self, classes: ClassRows, nodes: NodeRows) -> Look:
        """Return how some rows, as they are, look for each of some classes. Shapes (classes, rows)."""
        idle_fits = classes.have_room(nodes, IDLE)
        future_fits = idle_fits
        if self._world.futures_differ:
            future_fits = classes.have_room(nodes, FUTURE)
            idle_fits &= future_fits
        allowed = np.repeat((self._tables.nodes.quarantined_by[nodes.rows] == 0)[None], len(classes), axis=0)
        open_to = self._hooks.ask(points.classes_open, classes, nodes)
        if open_to is not None:
            allowed &= open_to
        return Look(allowed, idle_fits, future_fits, self._hooks.ask(points.classes_scored, classes, nodes))

    def idle_for(self, task: Task, fit: ClassFit, nodes: AnyArray) -> Bool:
        """Return on which of some nodes that take a task it could be bound at once. Shape (rows,)."""
        idle: Bool = fit.idle_fits[nodes]
        if self._some_wait:
            waits = self._hooks.ask(points.waits, task, NodeRows(self._tables, nodes))
            return idle if waits is None else idle & ~waits
        return idle

    def waits_for(self, task: Task, node: int) -> bool:
        """Return True if a task would have to wait on a node for something other than resources."""
        if not self._some_wait:
            return False
        waits = self._hooks.ask(points.waits, task, NodeRows(self._tables, np.array([node])))
        return waits is not None and bool(waits[0])

    def check_scores(self, task: Task, best: float) -> None:
        """Check the scores of a task if the best of them is not a number or is infinite. Raises: PluginFault."""
        # NumPy takes what is not a number for the greatest, so every such score is found by checking the best one.
        if best != -np.inf:
            self._hooks.ask(points.class_scores_checked, task.cls, self.all_nodes)
            self._hooks.ask(points.task_scores_checked, task, self.all_nodes, 0.0)

    def mendable(self, cls: int) -> Bool:
        """Return the nodes where each objection of a filter to the class can be mended by evictions. Shape (N,).
        Read-only."""
        nodes, question = self._tables.nodes, ("mendable", cls, self._tables.classes.identity(cls))
        assert nodes.stamps is not None
        rests_on = self.beside_rows()
        return self._memo.by_row(question, rests_on, nodes.stamps, lambda rows: self._mendable(cls, rows))

    def _mendable(self, cls: int, rows: AnyArray) -> Bool:
        """Compute ``mendable`` for some rows."""
        nodes = NodeRows(self._tables, rows)
        filter_results = self._hooks.ask(points.class_filters, TaskClass(self._tables, cls), nodes)
        # No eviction makes the unreadable object on a quarantined node readable.
        found: Bool = can_mend(filter_results, len(nodes)) & (self._tables.nodes.quarantined_by[rows] == 0)
        return found

    def capacity(self, cls: int) -> F64:
        """Return how many tasks of a class fit what will be idle on each node, -1 where a filter objects. Shape (N,).
        Read-only."""
        nodes, question = self._tables.nodes, ("capacity", cls, self._tables.classes.identity(cls))
        assert nodes.stamps is not None
        rests_on = self.beside_rows()
        found: F64 = self._memo.by_row(question, rests_on, nodes.stamps, lambda rows: self._capacity(cls, rows))
        return found

    def has_room(self, cls: int, node: int) -> bool:
        """Return True if a task of a class fits what will be idle on a node, and no filter objects."""
        tables = self._tables
        # Resources first: most nodes fail there, and asking filters costs more.
        room, need = tables.nodes.books[node, FUTURE].tolist(), tables.classes.req[cls].tolist()
        return _fits(room, need) > 0 and bool(self._capacity(cls, np.array([node]))[0] > 0)

    def _capacity(self, cls: int, rows: AnyArray) -> F64:
        """Compute ``capacity`` for some rows."""
        tables = self._tables
        req, nodes = tables.classes.req[cls], NodeRows(tables, rows)
        # Python floats: for one row, the calls of NumPy would cost more than the arithmetic.
        if len(rows) == 1:
            found = np.array([_fits(tables.nodes.books[rows[0], FUTURE].tolist(), req.tolist())])
        else:
            # One dimension after the other: most classes ask for two or three of the many resources of a cluster.
            found = np.full(len(rows), np.inf)
            for dimension in (req > 0).nonzero()[0].tolist():
                room = tables.nodes.books[rows, FUTURE, dimension]
                np.minimum(found, np.floor((room + EPS) / req[dimension]), out=found)
            np.maximum(found, 0.0, out=found)
        # Below 0 and not 0: a full node may become free by evictions, and one that a filter rejects may not
        # (``bounds``).
        found[tables.nodes.quarantined_by[rows] > 0] = -1.0
        for filter_result in self._hooks.ask(points.class_filters, TaskClass(tables, cls), nodes):
            found[filter_result.codes != 0] = -1.0
        return found

    # -- why not ------------------------------------------------------------------------------------------------------

    def errors(self, cls: int) -> FitErrors:
        """Return why no node takes the class now, by the filters that look at a class."""
        question = ("why not", cls, self._tables.classes.identity(cls))
        return self._memo.get(
            question, self.everything(), lambda: self.errors_of(TaskClass(self._tables, cls), self.all_nodes)
        )

    def errors_of(
        self,
        cls: TaskClass,
        nodes: NodeRows,
        of_task: Iterable[tuple[str, FilterResult]] = (),
        hypernode: str = "",
        *,
        resources: bool = True,
    ) -> FitErrors:
        """Return the reasons against every row: the shard and resources first, then the first filter that objects.

        ``of_task``: plugins that look at the single task, with their answers for the same rows. ``resources`` False:
        they were not checked (backfill).
        """
        filter_results: list[tuple[str, FilterResult]] = []
        # The order of Volcano's allocate action (allocate.go, predicate): the resources of the node, and then the
        # filters of plugins. The first reason of a node is the one that users read.
        if self.outside is not None:
            filter_results.append(("", FilterResult.of(~self.outside[nodes.rows], _OTHER_SHARD)))
        quarantined = self._tables.nodes.quarantined_by[nodes.rows] > 0
        if quarantined.any():
            filter_results.append(("", FilterResult.of(~quarantined, _QUARANTINED)))
        if resources:
            filter_results.append(("", shortage(cls, nodes)))
        of_class = self._hooks.ask(points.class_filters_by_hook, cls, nodes)
        filter_results += [*self._hooks.with_plugins(points.class_filters_by_hook, of_class), *of_task]
        first = np.zeros(len(nodes), dtype=np.int64)
        code = np.zeros(len(nodes), dtype=np.int64)
        why: list[tuple[Unfit, ...]] = [()]
        by = [""]
        for plugin, filter_result in filter_results:
            # Each node counts once, for the first filter that objects, as in Volcano, which stops at the first error.
            fresh = (first == 0) & (filter_result.codes > 0)
            code[fresh] = filter_result.codes[fresh] + len(why) - 1
            first[fresh] = 1
            # Codes of a filter are positions in its own list of reasons. Here they are moved to their positions in the
            # common list; position 0 means that the filter does not object.
            why += filter_result.why[1:]
            by += [plugin] * (len(why) - len(by))
        counts = np.bincount(code, minlength=len(why)).tolist()
        worst = np.array([_worst(reasons) for reasons in why], dtype=np.int8)
        tally: Counter[tuple[str, Unfit]] = Counter()
        for i in range(1, len(why)):
            for unfit in why[i] if counts[i] else ():
                tally[by[i], unfit] += counts[i]
        return FitErrors(
            tuple(_against(cls, nodes, *each, count) for each, count in tally.items() if each[1].reason),
            len(nodes),
            hypernode=hypernode,
            node_rows=np.asarray(nodes.rows, dtype=np.int32),
            codes=worst[code],
        )


def _fits(room: list[float], need: list[float]) -> float:
    """Return how many times the need fits into the room; inf if nothing is needed."""
    # With the tolerance of every comparison of resources: a sum of floats may end just below a whole multiple.
    fits = [floor((there + EPS) / each) for there, each in zip(room, need, strict=True) if each > 0]
    return float(max(0, min(fits))) if fits else inf


@lru_cache(maxsize=1024)
def _none_then_one(count: int) -> F64:
    """Return ``count`` zeros and as many ones. Shape (2 * count,). Read-only."""
    return read_only(np.repeat([0.0, 1.0], count))


def shortage(cls: TaskClass, nodes: NodeRows) -> FilterResult:
    """Return which dimension is short first, against what will be free. Shape (rows,)."""
    # Against what will be free, because a task may also be pipelined: only a node that is too small even then refuses
    # it.
    short = (cls.req - nodes.future >= EPS) & cls.tables.classes.compared[cls.row]
    first = np.where(short.any(axis=1), short.argmax(axis=1) + 1, 0)
    axis = cls.tables.axis
    asked = cls.spec.request if axis.unoffered >= 0 and cls.req[axis.unoffered] else None
    return FilterResult(first.astype(np.int32), _shortages(axis, asked))


@lru_cache(maxsize=64)
def _shortages(axis: ResourceAxis, asked: Resource | None) -> tuple[tuple[Unfit, ...], ...]:
    """Return the reason for each dimension. ``asked``: a request that names something which no node offers."""
    names = axis.names if asked is None else [axis.name(column, asked) for column in range(len(axis))]
    return ((), *((Unfit(_FIT_REASON.format(name), resource=name),) for name in names))


def _against(
    cls: TaskClass, nodes: NodeRows, plugin: str, unfit: Unfit, count: int
) -> NodeFilter | SearchCut | Shortage:
    """Return the objection to so many of the rows, with the amounts of the moment."""
    if unfit.steps:
        return SearchCut(plugin, unfit.steps, count, unfit.reason)
    if plugin or not unfit.resource:
        return NodeFilter(plugin, count, len(nodes), unfit.reason, unfit.changes)
    axis = cls.tables.axis
    d = axis.column.get(unfit.resource, axis.unoffered)
    # A node may be overbooked, for example by pods that were bound by others; that must not lower the sum of the rest.
    free = nodes.future[:, d].clip(min=0)
    return Shortage(unfit.resource, float(cls.req[d]), 1, float(free.sum()), float(free.max()), count, len(nodes))


def can_mend(filter_results: Iterable[FilterResult], count: int) -> Bool:
    """Return the rows where the departure of other pods could help: each reason is Unschedulable. Shape (count,)."""
    found = np.ones(count, dtype=bool)
    for filter_result in filter_results:
        final = [any(unfit.code not in _MENDABLE for unfit in reasons) for reasons in filter_result.why]
        found &= ~np.array(final)[filter_result.codes]
    return found


#: As in kube-scheduler's preemption: UnschedulableAndUnresolvable means that no departure of other pods can help, as
#: for a node selector or a taint. Searching for victims on such a node would be in vain.
_MENDABLE = (Code.SUCCESS, Code.UNSCHEDULABLE)


@lru_cache(maxsize=1024)
def _worst(reasons: tuple[Unfit, ...]) -> Code:
    """Return the worst code of some reasons."""
    return max((unfit.code for unfit in reasons), default=Code.SUCCESS)
