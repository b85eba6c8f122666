"""The end of a session: what plugins report then, and that the cycle survives a plugin that fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.views import Queue
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin.plugin import plugin
from pumice.model.decisions import Writes
from pumice.model.workloads.podgroup import PodGroupStatus
from pumice.testing.build import cluster, node, podgroup, pods, policy, queue, resource, run
from pumice.volcano import points

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}]}]"


def of_a_plugin(**methods: Any) -> Any:
    """A plugin with these methods."""

    class Mine:
        def __init__(self, ssn: Session) -> None:
            pass

        def on_session_open(self, ssn: Session) -> None: ...

    for name, method in methods.items():
        setattr(Mine, name, method)
    return plugin("mine")(Mine)


def cycle(**methods: Any) -> Any:
    store = cluster(node("n"), podgroup("g", 2), pods("g", 2))
    return run(store, CONF, plugins=[of_a_plugin(**methods)])


def test_plugins_publish_figures_and_say_when_they_will_answer_otherwise() -> None:
    ran = cycle(figures=lambda self: {"mine.count": [1, 2]}, wakes_at=lambda self: 17.0)
    assert ran.outcome.figures["mine.count"].tolist() == [1, 2]
    assert isinstance(ran.outcome.figures["mine.count"], np.ndarray)
    assert ran.outcome.wakes_at == 17.0


def fails(self: Any, *ssn: Session) -> Any:
    raise RuntimeError("not now")


@points.session_close
def fails_at_the_end(self: Any) -> None:
    raise RuntimeError("not now")


@pytest.mark.parametrize(
    ("name", "method", "problem"),
    [
        pytest.param("figures", fails, "RuntimeError: not now", id="figures"),
        pytest.param("figures", lambda self: [1.0], "answered [1.0], wanted Mapping", id="figures without names"),
        pytest.param("wakes_at", fails, "RuntimeError: not now", id="when it will answer otherwise"),
        pytest.param("wakes_at", lambda self: "soon", "answered 'soon', wanted float | int | None", id="in words"),
        pytest.param("on_session_close", fails, "RuntimeError: not now", id="told of the end"),
        pytest.param("at_the_end", fails_at_the_end, "RuntimeError: not now", id="asked at the end"),
    ],
)
def test_a_plugin_that_fails_at_the_end_costs_nobody_the_cycle(name: str, method: Any, problem: str) -> None:
    ran = cycle(**{name: method})
    assert len(ran.binds) == 2 and list(ran.phases) == ["ns/g"]
    (fault,) = ran.outcome.faults
    assert (fault.subject, fault.plugin, fault.problem) == ("the end of the cycle", "mine", problem)
    assert fault.where.rpartition(":")[0] == __file__


# -- where nothing waits


@plugin("counting")
class Counting:
    """Publishes how many jobs there are, and how often it was opened."""

    opened = 0

    def __init__(self, ssn: Session) -> None:
        Counting.opened += 1
        self.jobs = len(ssn.live_jobs)

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return False

    def figures(self) -> dict[str, Any]:
        return {"counting.jobs": [self.jobs]}


def idle(publishes: bool) -> Outcome:
    store = cluster(node("n"), podgroup("g", 1, phase="Running"), pods("g", 1, on="n", phase="Running"))
    conf = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: counting}]}]"
    outcome: Outcome = run(store, conf, plugins=[Counting], publishes=publishes).outcome
    return outcome


@pytest.mark.parametrize(("publishes", "opened"), [(False, 0), (True, 1)])
def test_where_nothing_waits_a_plugin_is_opened_for_its_figures_only_if_they_are_wanted(
    publishes: bool, opened: int
) -> None:
    before = Counting.opened
    figures = idle(publishes).figures
    assert Counting.opened == before + opened
    assert set(figures) == ({"counting.jobs", "job.ready", "job.lacking"} if publishes else set())


def test_while_nothing_changes_figures_are_those_of_before() -> None:
    written = podgroup("g", 1, status=PodGroupStatus("Running", running=1))
    held = queue("default", allocated=resource(1, "1Gi", pods=1))
    snapshot = cluster(node("n"), held, written, pods("g", 1, on="n", phase="Running")).snapshot()
    under = policy("actions: allocate\ntiers: [{plugins: [{name: counting}]}]", plugins=[Counting])
    memo, before = Memo(), Counting.opened
    first, again = (run(snapshot, under, publishes=True, memo=memo).outcome for _ in range(2))
    assert first.writes == Writes()
    assert first.figures["counting.jobs"].tolist() == again.figures["counting.jobs"].tolist() == [1]
    assert Counting.opened == before + 1


def test_figures_that_are_no_arrays_are_a_fault_of_the_plugin() -> None:
    (fault,) = cycle(figures=lambda self: {"mine.count": [[1], [1, 2]]}).outcome.faults
    assert (fault.plugin, fault.where.rpartition(":")[0]) == ("mine", __file__)
