"""Where nothing waits, a session shares the store's columns, and cannot write on them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Queue
from pumice.cycle import run_cycle
from pumice.framework import points
from pumice.framework.outcome import Outcome
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, pod, podgroup, policy, queue

HOLDS = [node("n0"), queue(), podgroup("g", 1, phase="Running"), pod("p", "g", on="n0", phase="Running")]
WAITS = {
    "a pending pod": [podgroup("new", 1, phase="Inqueue"), pod("new", "new")],
    "a pod that asks for nothing": [podgroup("new", 1, phase="Running"), pod("new", "new", 0, memory=0)],
    "a group to admit": [podgroup("new", 1, phase="Pending")],
    "a place to find out": [podgroup("new", 1, phase="Running", tier=1)],
}


@plugin("its-own-mind")
@points.queue_order
def its_own_mind(ssn: Session, left: Queue, right: Queue) -> int:
    """Does not declare what it looks at, nor that it moves nothing."""
    return 0


def cycle(*objects: Any, conf: str = "") -> Outcome:
    more = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: gang}, {name: predicates}MORE]\n'
    return run_cycle(
        cluster(*objects).snapshot(), policy(more.replace("MORE", conf), plugins=[its_own_mind]), 0.0, ListPlanner()
    )


def can_write(outcome: Outcome) -> bool:
    tables = outcome.session.tables
    columns = (tables.nodes.books, tables.nodes.view, tables.tasks.status, tables.jobs.phase, tables.subs.counts)
    return all(column.flags.writeable for column in columns)


def test_nothing_is_copied_where_nothing_waits() -> None:
    assert not can_write(cycle(*HOLDS))


@pytest.mark.parametrize("more", WAITS.values(), ids=WAITS)
def test_there_is_something_to_write_where_something_waits(more: list[Any]) -> None:
    assert can_write(cycle(*HOLDS, *more))


def test_a_plugin_that_declares_nothing_may_write() -> None:
    assert can_write(cycle(*HOLDS, conf=", {name: its-own-mind}"))


def test_a_write_where_nothing_was_to_be_written_is_an_error() -> None:
    ssn = cycle(*HOLDS).session
    with pytest.raises(ValueError, match="read-only"):
        ssn.statement().evict(0, "on a whim")
