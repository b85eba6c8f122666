"""Equal parts of jobs that find no place are tried once, in whatever queues their jobs are."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from pumice.api import Session, TaskRun, plugin, points
from pumice.cycle import run_cycle
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import Operation
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.decisions import Decision, Refusal
from pumice.model.events import Object, Seen
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import Resource
from pumice.model.workloads.gang import SubGroup
from pumice.ours.plugins.gpuplacement import POLICIES, PRICED, RANDOM
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from tests.unit.kai.cluster import GPU, NOW, PLUGINS, Planner, job, node, policy, queue, store

QUEUES = 50
ALLOCATE = policy(["allocate"])


def mixed(name: str, of: str, size: int, *, age: float = 0.0, minimum: int | None = None) -> list[Object]:
    """A gang of pods of two kinds in turn, each with a GPU."""
    found = list[Object]()
    for number, each in enumerate(job(name, of, [""] * size, age=age, minimum=minimum)):
        large = PodSpec(Resource(2000.0, 1e9, {"pods": 1.0, GPU: 1000.0}))
        found.append(replace(each, spec=large) if isinstance(each, Pod) and number % 2 else each)
    return found


class Counted:
    """How many tasks are put on nodes, in trials too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks, place = 0, Statement._place

        def counting(stmt: Statement, op: Operation) -> Refusal | None:
            self.tasks += len(op.placement.rows)
            return place(stmt, op)

        monkeypatch.setattr(Statement, "_place", counting)


def findings(found: Store, under: Policy, memo: Memo) -> tuple[list[tuple[str, object]], list[Decision]]:
    """What was found for each job, in order, and what was decided."""
    planner = Planner()
    outcome = run_cycle(found.snapshot(), under, NOW, planner, memo=memo)
    assert not outcome.faults
    return [(entry.subject, entry.finding) for entry in outcome.entries], planner.taken


@pytest.mark.parametrize("kinds", [1, 2])
def test_equal_gangs_of_many_queues_are_tried_once(kinds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    queues, counted = [queue(f"q{i:02}") for i in range(QUEUES)], Counted(monkeypatch)
    names = [(f"g{i}", f"q{i % QUEUES:02}") for i in range(100)]
    gangs = [mixed(*each, 9) if kinds == 2 else job(*each, [""] * 9) for each in names]
    found, memo = store(node("a", 8), *queues, *gangs), Memo()
    first = findings(found, ALLOCATE, memo)
    assert counted.tasks == 8
    assert findings(found, ALLOCATE, memo) == first
    assert counted.tasks == 8, "nothing has moved since"


def gpu_placement(by: str) -> Policy:
    """KAI's policy with the plugin of ours that chooses nodes and devices."""
    ours = {"name": "gpuplacement", "arguments": {"policy": by}}
    return policy(["allocate"], [*(name for name in PLUGINS if name != "nodeplacement"), ours])


@pytest.mark.parametrize(
    ("by", "placed"),
    [pytest.param(by, 8, id=by) for by in POLICIES if by not in (RANDOM, PRICED)]
    # Scores of single tasks may differ between equal ones.
    + [pytest.param(by, 3 * 8, id=by) for by in (RANDOM, PRICED)],
)
def test_equal_gangs_under_gpuplacement_find_what_they_find_in_a_cycle_that_keeps_nothing(
    by: str, placed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, counted = [queue(f"q{i}") for i in range(4)], Counted(monkeypatch)
    fits, gangs = job("fits", "q3", [""] * 3, age=9.0), [mixed(f"g{i}", f"q{i}", 9) for i in range(3)]
    found = store(node("a", 5), node("b", 6), *queues, fits, *gangs)
    shared = findings(found, gpu_placement(by), Memo())
    assert counted.tasks == 3 + placed and len(shared[1]) == 3
    assert findings(found, gpu_placement(by), Memo(keeps=False)) == shared
    assert counted.tasks == 3 + placed + 3 + 3 * 8


def test_they_are_tried_again_once_a_node_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, memo = Counted(monkeypatch), Memo()
    found = store(node("a", 8), queue("q0"), queue("q1"), mixed("g0", "q0", 9), mixed("g1", "q1", 9))
    findings(found, ALLOCATE, memo)
    found.apply(Seen(node("a", 9)))
    _, decided = findings(found, ALLOCATE, memo)
    assert (counted.tasks, len(decided)) == (8 + 9, 9)


def sets_of(name: str, of: str, names: Iterable[str]) -> list[Object]:
    """A gang of two pod sets, of which the second has no room."""
    one, other = names
    parts = [f"/{one}"] * 5 + [f"/{other}"] * 5
    return job(name, of, parts, sub_groups=(SubGroup(one, 5), SubGroup(other, 5)))


@plugin("shut")
class Shut:
    """Takes nothing into one queue."""

    def __init__(self, ssn: Session) -> None:
        self.tables = ssn.tables

    @points.on_allocate
    def refused(self, run: TaskRun) -> Refusal | None:
        return Refusal("shut") if self.tables.queues.names[run.queue] == "q1" else None


def with_shut() -> Policy:
    registry = builtin_registry().with_plugins("kai", (Shut,))
    tiers = [{"plugins": [{"name": name} for name in (*PLUGINS, "shut")]}]
    return read_policy({"dialect": "kai", "actions": "allocate", "tiers": tiers}, registry)


@pytest.mark.parametrize(
    ("jobs", "under"),
    [
        pytest.param([mixed("g0", "q0", 9), mixed("g1", "q1", 9)], ALLOCATE, id="equal"),
        pytest.param([mixed("g0", "q0", 9), mixed("g1", "q1", 9, minimum=1)], ALLOCATE, id="one needs a pod alone"),
        pytest.param([mixed("g0", "q0", 9), mixed("g1", "low", 9)], ALLOCATE, id="a queue at its limit"),
        pytest.param([sets_of("g0", "q0", "ab"), sets_of("g1", "q1", "cd")], ALLOCATE, id="pod sets by other names"),
        pytest.param([mixed("g0", "q0", 9), mixed("g1", "q1", 9)], with_shut(), id="a plugin refuses one queue"),
    ],
)
def test_each_job_is_given_its_own_reason(jobs: list[list[Object]], under: Policy) -> None:
    """As in a cycle that keeps nothing."""
    found = store(node("a", 8), queue("q0"), queue("q1"), queue("low", limit=2), *jobs)
    plain = findings(found, under, Memo(keeps=False))
    assert {subject for subject, _ in plain[0]} == {"ns/g0", "ns/g1"}
    assert findings(found, under, Memo()) == plain
