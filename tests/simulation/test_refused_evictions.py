"""Evictions that an API server refuses for an hour: tried again once a cycle, nothing is lost, then they are done."""

from __future__ import annotations

from pumice.model.decisions import Decision, Evict
from pumice.model.queue import PriorityClass
from pumice.runtime.policy.conf import policy_of
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.laws.by_policy import laws_of
from pumice.sim.measures.history import History
from pumice.sim.shell import Shell
from pumice.sim.workloads.work import SimJob, SimTask
from pumice.sim.world import Ending, Simulation
from pumice.testing.build import node, queue, spec
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

HOUR = 3600.0
POD = SimTask("worker", 2, spec(cpu=1))


def test_an_eviction_that_is_refused_for_an_hour_is_done_then() -> None:
    cluster = SimCluster(Engine(0.0))
    controller = Controller(cluster)
    shell = Shell(cluster, policy_of(DEFAULT_CONF.replace("allocate,", "allocate, preempt,"), volcano_registry()))
    history = History(cluster, controller)
    laws = laws_of(shell, controller, history)
    tried = []

    def busy(decision: Decision) -> str | None:
        if not isinstance(decision, Evict):
            return None
        tried.append(cluster.engine.now)
        return "429: too many requests" if cluster.engine.now < HOUR else None

    cluster.objection = busy
    for each in (PriorityClass("high", 9), PriorityClass("low", 1), queue(), node("a", cpu=2)):
        cluster.put(each)
    controller.submit(SimJob("ns", "old", "default", (POD,), 1, 10 * HOUR, 0.0, "low"))
    controller.submit(SimJob("ns", "new", "default", (SimTask("worker", 1, POD.spec),), 1, 60.0, 60.0, "high"))
    simulation = Simulation(
        cluster,
        controller,
        shell.cycle,
        period_s=60.0,
        history=history,
        after_event=laws.after_event,
        after_cycle=laws.after_cycle,
    )
    result = simulation.run()
    assert (result.ending, result.completed, result.evictions) == (Ending.DONE, 2, 1)
    assert 50 <= len(tried) <= 62, "once a cycle"
    assert tried[-1] >= HOUR
