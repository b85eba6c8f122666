"""Which sets of victims are tried, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.framework.cycle.session import Session
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.job_order import SortedJobs
from pumice.kai.engine.points import MULTI_NODE, NODE_LOCAL
from pumice.kai.engine.search import preemptible_jobs
from pumice.kai.engine.victims.candidates import Candidates
from pumice.kai.engine.victims.sets import Request, generators
from pumice.model.events import Object
from tests.unit.kai.cluster import PLUGINS, cycle, job, node, opened, policy, queue, store

NAMES = {NODE_LOCAL: "sg-nodelocalgreedy", MULTI_NODE: "sg-multinodegang"}


def sets(name: str, gpus: int, tasks: int, *objects: Object | list[Object]) -> list[list[str]]:
    """Names of the victims of each set, for a gang of so many tasks that ask for so many GPUs."""
    new = job("new", "q", [""] * tasks, gpus=gpus, priority=75)
    ssn = opened(store(queue("q"), *objects, new), policy(plugins=(*PLUGINS, NAMES[name])))
    row = ssn.tables.jobs.uids.tolist().index("ns/new")
    part = chunk_of(ssn, row)
    assert part is not None
    sorted_jobs = SortedJobs(ssn, preemptible_jobs(ssn))
    candidates = Candidates(ssn, sorted_jobs, list(sorted_jobs.leaves), lambda each: each != row)
    request = Request(ssn, part, candidates, (), np.zeros(len(ssn.tables.nodes.facts), dtype=bool))
    (generator,) = generators(ssn)
    return [_names(ssn, [row for group in groups for row in group]) for groups in generator.sets(request)]


def _names(ssn: Session, rows: list[int]) -> list[str]:
    return [ssn.tables.tasks.pods[row].name for row in rows]


def running(name: str, age: float, *on: str, gpus: int = 1) -> list[Object]:
    return job(name, "q", on, gpus=gpus, age=age)


def test_one_node_at_a_time_by_the_name_of_nodes() -> None:
    """The youngest job leaves first; of its nodes the first by name is tried first, with all others that are there."""
    found = sets(NODE_LOCAL, 2, 1, node("a", 2), node("b", 2), running("old", 9, "a"), running("young", 1, "b", "a"))
    assert [sorted(each) for each in found] == [["young-0", "young-1"], ["old-0", "young-0", "young-1"]], (
        "the gang leaves whole, so both its nodes give the same set, once"
    )


def test_the_fewest_nodes_that_cover_the_need_the_smallest_first_and_then_more() -> None:
    nodes = node("a", 2), node("b", 2), node("c", 4)
    fills = running("f2", 3, "a", gpus=2), running("f1", 2, "b", gpus=2), running("f0", 1, "c", gpus=4)
    assert sets(MULTI_NODE, 2, 1, *nodes, *fills) == [
        ["f0-0"],
        ["f1-0"],
        ["f0-0", "f1-0"],
        ["f1-0"],
        ["f1-0", "f2-0"],
        ["f0-0", "f1-0", "f2-0"],
    ]


def test_nodes_that_hold_no_task_of_the_part_are_left_out() -> None:
    nodes = node("a", 1), node("b", 4)
    fills = running("small", 1, "a"), running("large", 2, "b", gpus=4)
    assert sets(MULTI_NODE, 4, 1, *nodes, *fills) == [["large-0"]]


@pytest.mark.parametrize(
    "plugins", [(), (NAMES[NODE_LOCAL],), (NAMES[MULTI_NODE],)], ids=["both", "node local", "multi node"]
)
def test_a_search_succeeds_with_each_generator_and_with_a_policy_that_names_none(plugins: tuple[str, ...]) -> None:
    low = job("low", "q", ["a"] * 2)
    high = job("high", "q", [""], priority=75)
    ran = cycle(store(node("a", 2), queue("q", 2), low, high), policy(plugins=(*PLUGINS, *plugins)))
    assert ran.states["high-0"] == "Pipelined@a"
