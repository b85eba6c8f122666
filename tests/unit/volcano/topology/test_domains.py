"""Jobs inside one domain: what a trial that is recalled says is what it said when it was tried."""

from __future__ import annotations

import pytest

from pumice.framework.memo import Memo
from pumice.model.blockers import CAPACITY, Domain, QueueLimit
from pumice.reasons.blockers import blockers_of
from pumice.testing.build import cluster, hypernode, node, podgroup, pods, policy, queue, resource, run

CONF = """
actions: "allocate"
tiers: [{plugins: [{name: gang}, {name: proportion}]}]
"""
BY_DOMAIN = CONF.replace("proportion}", "proportion}, {name: network-topology-aware}")


def test_a_recalled_trial_still_says_that_the_queue_was_full() -> None:
    state = cluster(
        queue("small", capability=resource(1, "1Gi")),
        node("n"),
        hypernode("rack", 1, ["n"]),
        podgroup("g", 1, "small", phase="Inqueue", tier=1, soft=True),
        pods("g", 1, cpu=2),
    ).snapshot()
    memo, under = Memo(), policy(CONF)
    first, second = (run(state, under, memo=memo).outcome.entries for _ in range(2))
    assert [(entry.subject, entry.finding) for entry in first] == [("ns/g", QueueLimit("small", CAPACITY))]
    assert second == first


def test_a_gang_that_no_domain_takes_says_so() -> None:
    state = cluster(
        queue(),
        node("n", cpu=4),
        podgroup("g", 3, phase="Inqueue", tier=1, soft=True),
        pods("g", 3, cpu=2),
    )
    outcome = run(state, policy(BY_DOMAIN)).outcome
    assert [(entry.subject, entry.finding) for entry in outcome.entries] == [("ns/g", Domain())]
    assert blockers_of(outcome)["ns/g"][-1] == Domain()


#: Cores of nodes that together have six, by how many pods with two cores each have room there.
RACKS = {0: [1.5] * 4, 1: [3, 1.5, 1.5], 2: [3, 3], 3: [6]}


@pytest.mark.parametrize("room", [[1, 2], [2, 1], [1, 2, 0], [3, 1], [1, 1, 3, 2]], ids=str)
def test_of_trials_that_are_recalled_the_same_is_said_as_of_those_that_were_made(room: list[int]) -> None:
    """Return where the last trial with a place for a task had put it, and what prevented it, by task."""
    names = [[f"n{i}-{j}" for j in range(len(RACKS[pods_there]))] for i, pods_there in enumerate(room)]
    nodes = [
        node(name, cpu=cores)
        for there, pods_there in zip(names, room, strict=True)
        for name, cores in zip(there, RACKS[pods_there], strict=True)
    ]
    tree = [hypernode(f"rack{i}", 1, there) for i, there in enumerate(names)]
    groups = [podgroup(name, 3, phase="Inqueue", tier=1) for name in "abc"]
    state = cluster(*nodes, *tree, *groups, *(pods(name, 3, cpu=2) for name in "abc")).snapshot()
    said = []
    for memo in (Memo(), Memo(keeps=False)):
        outcome = run(state, policy(BY_DOMAIN), memo=memo).outcome
        rows = [list(outcome.tables.jobs.uids).index(f"ns/{name}") for name in "abc"]
        traces = [outcome.trace.undone_of(row) for row in rows]
        said.append(
            (
                [None if each is None else [column.tolist() for column in each] for each in traces],
                [[errors.said for errors in outcome.trace.errors_of(row).values()] for row in rows],
                outcome.entries,
                outcome.pipelined,
            )
        )
    assert said[0] == said[1]
    assert any(last_trial is not None for last_trial in said[0][0])
