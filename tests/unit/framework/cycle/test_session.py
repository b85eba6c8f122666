"""A session: what plugins are given, whose turn it is, and that where nothing waits nothing is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Column
from pumice.columns.tables import Tables
from pumice.columns.views import Queue
from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginError, PluginFault
from pumice.framework.plugin.plugin import plugin
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, session
from pumice.testing.moving import differing, moving_bytes

HOLDS = [node("n0"), queue(), podgroup("g", 1, phase="Running"), pod("p", "g", on="n0", phase="Running")]
WAITS = {
    "a pending pod": [podgroup("new", 1, phase="Inqueue"), pod("new", "new")],
    "a pod that asks for nothing": [podgroup("new", 1, phase="Running"), pod("new", "new", 0, memory=0)],
    "a group to admit": [podgroup("new", 1, phase="Pending")],
    "a place to find out": [podgroup("new", 1, phase="Running", tier=1)],
}


@plugin("its-own-mind", keeps="python")
@points.queue_order
def its_own_mind(ssn: Session, left: Queue, right: Queue) -> int:
    """Keeps Python state, so that what moves with it is unknown."""
    return 0


@plugin("writing")
class Writing:
    """Writes when the session ends."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.session_close
    def done(self) -> None:
        self.ssn.journal.put(self.ssn.tables.jobs["phase"], 0, 0)


def cycle(*objects: Any, conf: str = "") -> Outcome:
    more = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: gang}, {name: predicates}MORE]\n'
    return run_cycle(
        cluster(*objects).snapshot(),
        policy(more.replace("MORE", conf), plugins=[its_own_mind, Writing]),
        0.0,
        ListPlanner(),
    )


def can_write(outcome: Outcome) -> bool:
    return is_written_on(outcome.tables)


def is_written_on(tables: Tables) -> bool:
    """Whether the moving columns are the session's own, as soon as it writes."""
    columns = (
        tables.nodes["books"],
        tables.nodes["view"],
        tables.tasks["status"],
        tables.jobs["phase"],
        tables.subs["counts"],
    )
    return all(column.shared is not None or column.data.flags.writeable for column in columns)


def test_nothing_is_copied_where_nothing_waits() -> None:
    assert not can_write(cycle(*HOLDS))


@pytest.mark.parametrize("more", WAITS.values(), ids=WAITS)
def test_there_is_something_to_write_where_something_waits(more: list[Any]) -> None:
    assert can_write(cycle(*HOLDS, *more))


def test_a_plugin_that_keeps_what_it_likes_may_write() -> None:
    assert can_write(cycle(*HOLDS, conf=", {name: its-own-mind}"))


def test_a_plugin_that_writes_where_nothing_was_to_be_written_is_reported() -> None:
    (fault,) = cycle(*HOLDS, conf=", {name: writing}").faults
    assert (fault.plugin, fault.point, fault.hook) == ("writing", "session_close", "Writing.done")
    assert "read-only" in fault.problem


def test_a_write_where_nothing_was_to_be_written_is_an_error() -> None:
    ssn = session(cluster(*HOLDS), "tiers: [{plugins: [{name: gang}]}]", actions="allocate")
    assert ssn.is_idle and not is_written_on(ssn.tables)
    with pytest.raises(ValueError, match="read-only"):
        ssn.statement().evict([0], "on a whim")


# -- what plugins are given


def keeping(**how: Any) -> Any:
    """A plugin with a column of its own, made as it opens."""

    @plugin("keeping")
    class Keeping:
        def __init__(self, ssn: Session) -> None:
            self.own: Column[Any] = ssn.column("keeping.own", **how)

        @points.overused
        def overused(self, queue: Queue) -> bool:
            return False

    return Keeping


def own_column(ssn: Session) -> Column[Any]:
    found: Column[Any] = ssn.hooks.plugin("keeping").own
    return found


KEEPING = "tiers: [{plugins: [{name: keeping}]}]"


@pytest.mark.parametrize(
    ("how", "shape"),
    [
        pytest.param({"axis": "queue"}, (1,), id="one a queue"),
        pytest.param({"axis": "node", "values": np.ones(2)}, (2,), id="with values"),
        pytest.param({"values": np.ones((3, 2))}, (3, 2), id="of its own"),
    ],
)
def test_a_plugin_s_column(how: dict[str, Any], shape: tuple[int, ...]) -> None:
    ssn = session(cluster(node("n0"), node("n1")), KEEPING, plugins=[keeping(**how)])
    column = own_column(ssn)
    assert column.array.shape == shape
    assert column.array.any() == ("values" in how), "zero where nothing is given"
    assert ssn.world.columns == {"keeping.own": column}


def test_a_column_that_is_asked_for_too_late_is_an_error() -> None:
    """Who reads it must know of it as soon as plugins are open."""
    ssn = session(cluster(), KEEPING, plugins=[keeping()])
    with pytest.raises(PluginError, match=r"column keeping\.late asked for when the plugin was open already"):
        ssn.column("keeping.late")


def test_what_several_plugins_need_is_built_once_a_session() -> None:
    ssn, built = session(cluster()), []
    for _ in range(2):
        assert ssn.shared("key", lambda: built.append(1) or "value") == "value"
    assert built == [1]
    assert session(cluster()).shared("key", lambda: "another") == "another"


@pytest.mark.parametrize(
    ("name", "found"),
    [pytest.param("gang", "Gang", id="by name"), pytest.param("drf", None, id="one that the policy does not have")],
)
def test_a_plugin_by_its_name(name: str, found: str | None) -> None:
    instance = session(cluster(), "tiers: [{plugins: [{name: gang}]}]").hooks.plugin(name)
    assert (type(instance).__name__ if instance is not None else None) == found


# -- turns


def failing(ssn: Session) -> None:
    """A step in which a plugin fails after something was written."""
    stmt = ssn.statement()
    stmt.allocate([0], [0])
    ssn.journal.put(ssn.tables.jobs["phase"], 0, 2)
    raise PluginFault("a-plugin", "job_ready", "hook", "file.py:7", "ZeroDivisionError: division by zero")


def waiting() -> Session:
    return session(cluster(node("n"), podgroup("g"), pods("g", 2)), "tiers: []")


def test_the_subject_of_a_fault_scope_is_skipped_when_a_plugin_fails() -> None:
    ssn = waiting()
    before = moving_bytes(ssn)
    with ssn.fault_scope("ns/g"):
        failing(ssn)
    assert not differing(before, moving_bytes(ssn))
    assert ssn.journal.open_statements == 0
    (fault,) = ssn.trace.faults
    assert (fault.subject, fault.plugin, fault.point, fault.where) == ("ns/g", "a-plugin", "job_ready", "file.py:7")
    (entry,) = ssn.trace.entries
    assert (entry.subject, entry.finding) == ("ns/g", fault.blocker)


def test_what_was_done_before_the_fault_scope_stays() -> None:
    ssn = waiting()
    outer = ssn.statement()
    outer.allocate([1], [0])
    before = moving_bytes(ssn)
    with ssn.fault_scope("ns/g"):
        failing(ssn)
    assert not differing(before, moving_bytes(ssn))
    assert ssn.journal.open_statements == 1
    outer.discard()
    assert ssn.tables.nodes.used[0, 0] == 0


def test_a_fault_of_ours_is_no_plugin_fault() -> None:
    """A broken invariant ends the cycle."""
    ssn = waiting()
    with pytest.raises(AssertionError, match="illegal move"), ssn.fault_scope("ns/g"):
        stmt = ssn.statement()
        stmt.allocate([0], [0])
        stmt.allocate([0], [0])


# -- which jobs


def test_which_jobs_belong_to_a_session() -> None:
    groups = [podgroup("waits"), podgroup("runs", creation=1.0), podgroup("lost", queue="gone", creation=2.0)]
    state = cluster(node("n"), groups, pods("waits", 1), pods("runs", 1, on="n"), pods("lost", 1, on="n"))
    ssn = session(state, "tiers: []")
    names = dict(enumerate(ssn.tables.jobs.uids))
    assert {names[row] for row in ssn.live_jobs.tolist()} == {"ns/waits", "ns/runs"}


def test_a_session_that_is_closed_holds_nothing() -> None:
    ssn = waiting()
    ssn.close()
    assert not vars(ssn)
