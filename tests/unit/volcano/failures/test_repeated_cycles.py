"""A cycle in which nothing has changed asks, finds and reports the same again, whatever earlier cycles have kept."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.model.events import Seen
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy

#: The plugins share what queues hold, which is summed anew in each cycle.
POLICY = policy(
    "actions: enqueue, allocate, backfill\n"
    "tiers: [{plugins: [{name: gang}, {name: drf}, {name: proportion}, {name: predicates}]}]"
)


def full_cluster() -> Store:
    """A full node, and two equal gangs that wait."""
    holds = podgroup("holds", 1, phase="Running"), pods("holds", 1, cpu=4, on="n", phase="Running")
    waits = [podgroup(name, 2, phase="Inqueue", creation=1.0) for name in ("one", "two")]
    return cluster(node("n", cpu=4), *holds, *waits, pods("one", 2, cpu=2), pods("two", 2, cpu=2))


def findings(outcome: Outcome) -> Any:
    notices = [(each.pod, each.reason, each.message) for each in outcome.notices()]
    phases = [(each.job, each.status.phase) for each in outcome.groups]
    return outcome.entries, notices, phases, (outcome.trace.failed_as > 0).tolist(), outcome.pipelined


def cycles(store: Store, memo: Memo | None, count: int) -> list[Any]:
    """The findings of some cycles; without a memo, each cycle has a new one that keeps nothing."""
    return [
        findings(run_cycle(store.snapshot(), POLICY, now, ListPlanner(), memo=memo or Memo(keeps=False)))
        for now in (float(i + 1) for i in range(count))
    ]


def test_an_equal_cycle_reports_what_the_first_one_did() -> None:
    first, *others = cycles(full_cluster(), Memo(), 3)
    assert "Unschedulable" in repr(first[1])
    assert [each[:2] for each in others] == [first[:2]] * 2


@pytest.mark.parametrize(
    "news",
    [
        pytest.param((), id="nothing"),
        pytest.param((node("m", cpu=4),), id="more room"),
        pytest.param((podgroup("new", 1, phase="Inqueue", creation=2.0), pod("new", "new", 9)), id="another waits"),
        pytest.param((podgroup("one", 1, phase="Inqueue", creation=1.0),), id="a smaller minimum"),
    ],
)
def test_what_is_kept_changes_no_finding(news: tuple[Any, ...]) -> None:
    memo, ours, plain = Memo(), full_cluster(), full_cluster()
    cycles(ours, memo, 2), cycles(plain, None, 2)
    for obj in news:
        ours.apply(Seen(obj)), plain.apply(Seen(obj))
    assert cycles(ours, memo, 2) == cycles(plain, None, 2)
