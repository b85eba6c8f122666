"""Who looks at single tasks as nodes are chosen, and for which classes."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import PODS, ROWS, FilterResult, NodeRows, PluginFault, Session, Task, TaskClass, Unfit, plugin, points
from pumice.framework.memo import Memo
from pumice.placing.choose import placing_of
from pumice.testing.build import cluster, node, podgroup, pods, policy, run, session

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: nodeorder}, {name: WHO}]}]"


@plugin("of-classes")
@points.predicate
def of_classes(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
    return None


@plugin("of-tasks")
@points.predicate(reads=(ROWS,))
def of_tasks(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
    return None


class OfSome:
    """Keeps tasks that ask for much off the first node. ``asked``: about which."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    def large(self, cls: TaskClass) -> bool:
        return bool(cls.req[0] >= 2000.0)

    def _answer(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        self.asked.append(task.key)
        return FilterResult.of(nodes.rows > 0, Unfit("it is the first one")) if self.large(task.cls) else None

    asked: list[str]


def of_some(asked: list[str]) -> Any:
    @plugin("of-some")
    class Found(OfSome):
        @points.predicate(reads=(ROWS, PODS), concerns="large")
        def keeps_off(self, task: Task, nodes: NodeRows) -> FilterResult | None:
            return self._answer(task, nodes)

    Found.asked = asked
    return Found


@plugin("of-some")
class Breaks:
    def __init__(self, ssn: Session) -> None: ...

    def large(self, cls: TaskClass) -> bool:
        raise KeyError("disk")

    @points.node_order(reads=(ROWS,), concerns="large")
    def order(self, task: Task, nodes: NodeRows) -> None:
        return None


def gangs() -> Any:
    """Four jobs of two, of which the last two ask for much; there is room for one such on the second node."""
    kinds = zip("abcd", (1, 1, 2, 2), strict=True)
    jobs = [(podgroup(name, 2, phase="Inqueue"), pods(name, 2, cpu=cpu)) for name, cpu in kinds]
    return cluster(node("n0", 4), node("n1", 9), *(each for job in jobs for each in job))


@pytest.mark.parametrize(
    ("who", "minded"),
    [
        pytest.param("of-classes", [False, False], id="a hook about classes is no hook about tasks"),
        pytest.param("of-tasks", [True, True], id="one about tasks is, of all of them"),
        pytest.param("of-some", [False, True], id="or of those of classes that it says concern it"),
    ],
)
def test_for_which_classes(who: str, minded: list[bool]) -> None:
    under = policy(CONF.replace("WHO", who), plugins=(of_classes, of_tasks, of_some([])))
    ssn = session(gangs(), under)
    assert [placing_of(ssn).about_tasks.mind(cls) for cls in range(2)] == minded


def test_of_tasks_of_other_classes_it_is_not_asked() -> None:
    asked: list[str] = []
    under = policy(CONF.replace("WHO", "of-some"), plugins=[of_some(asked)])
    ran = run(gangs(), under)
    assert {key.rstrip("01") for key in asked} == {"ns/c-", "ns/d-"}
    assert {key: where for key, where in ran.binds.items() if key.startswith("ns/c")} == {
        "ns/c-0": "n1",
        "ns/c-1": "n1",
    }
    assert ran.binds == run(gangs(), under, memo=Memo(keeps=False)).binds


def test_one_that_cannot_say_costs_the_job_its_turn() -> None:
    under = policy(CONF.replace("WHO", "of-some"), plugins=[Breaks])
    with pytest.raises(PluginFault, match="KeyError"):
        placing_of(session(gangs(), under)).about_tasks.mind(0)
    faults = run(gangs(), under).outcome.faults
    assert {(fault.plugin, fault.subject) for fault in faults} == {("of-some", f"ns/{job}") for job in "abcd"}
