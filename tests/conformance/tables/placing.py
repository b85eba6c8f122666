"""Checks of the function tables about the choice of a place: the best node or hypernode, shards, nominations, and the
order in which backfill takes tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, I32
from pumice.columns.rows import NodeRows
from pumice.columns.snapshot import Shard
from pumice.columns.views import SubJob, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.model.decisions import Bind
from pumice.placing.batch import placing_of
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano import points
from pumice.volcano.actions.backfill import tasks_in_order
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import PendingTasks
from pumice.volcano.gangs.sub_job import try_nomination
from pumice.volcano.topology.domains import hypernode_scores
from tests.conformance.tables.objects import decoded, job_row, opened, row_of
from tests.conformance.tables.table import Row, disagreement, table
from tests.conformance.tables.topology import exactly

_DOUBLE = "actions: allocate\ntiers: [{plugins: [{name: scores}]}]"


def _by_name(scores: Mapping[str, Iterable[Any]]) -> dict[str, float]:
    """A recorded mapping of score -> names, turned round."""
    return {name: float(score) for score, names in scores.items() for name in names}


# -- the best of several


@table("util/TestSelectBestNode.yaml")
def best_node(row: Row) -> str | None:
    """The node that a task is given, its score, and every other one that is as good."""
    scores_wanted = _by_name({score: [each["Name"] for each in nodes] for score, nodes in row["NodeScores"].items()})

    @plugin("scores")
    class Scores:
        def __init__(self, ssn: Session) -> None:
            self.names = ssn.tables.nodes.facts.names

        @points.node_order
        def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
            return np.array([scores_wanted[self.names[node]] for node in nodes.rows.tolist()])

    ssn = session(cluster(map(node, scores_wanted), podgroup("g"), pods("g", 1)), _DOUBLE, plugins=[Scores])
    task, names = row_of(ssn, "g-0"), ssn.tables.nodes.facts.names
    choice = placing_of(ssn).choose(task, placing_of(ssn).feasible.all_nodes)
    expected = [each["Name"] if each else "" for each in row["ExpectedNodes"]]
    if choice.node < 0:
        return disagreement((0, [""]), (row.get("ExpectedScore", 0), expected))
    scores = placing_of(ssn).feasible.of(int(ssn.tables.tasks.cls[task])).score
    best = float(scores[choice.node])
    equals = sorted(name for name, score in zip(names, scores.tolist(), strict=True) if score == best)
    return disagreement((best, equals), (row.get("ExpectedScore", 0), sorted(expected)))


@table("util/TestSelectBestHyperNodeAndScore.yaml")
def best_hypernode(row: Row) -> str | None:
    """The hypernode that allocate takes for a gang of one, its score, and every other one that is as good."""
    scores_wanted = _by_name(row["hyperNodeScores"])

    @plugin("scores")
    class Scores:
        def __init__(self, ssn: Session) -> None:
            self.tree = ssn.tables.tree

        @points.hyper_node_gradient_for_sub_job
        def all_at_once(self, sub: SubJob, start: int, purpose: str) -> list[list[int]]:
            return [[self.tree.row_of[name] for name in scores_wanted]]

        @points.hyper_node_order
        def score(self, sub: SubJob, hypernodes: I32) -> F64:
            return np.array([scores_wanted[self.tree.names[each]] for each in hypernodes.tolist()])

    planner = ListPlanner()
    hypernodes = [exactly(name, 1, [f"{name}-n"]) for name in scores_wanted]
    group = podgroup("g", soft=True, phase="Inqueue")
    store = cluster([node(f"{name}-n") for name in scores_wanted], hypernodes, group, pods("g", 1))
    ssn = session(store, _DOUBLE, plugins=[Scores], planner=planner)
    ssn.policy.actions[0].run(ssn)
    taken = [decision.node.removesuffix("-n") for decision in planner.taken if isinstance(decision, Bind)]
    if not taken:
        return disagreement(([], 0), (row["expectedNodes"], row.get("expectedScore", 0)))
    scores = hypernode_scores(ssn, 0, [ssn.tables.tree.row_of[name] for name in scores_wanted])
    best = scores_wanted[taken[0]]
    equals = sorted(name for name, score in zip(scores_wanted, scores.tolist(), strict=True) if score == best)
    return disagreement((best, equals), (row.get("expectedScore", 0), sorted(row["expectedNodes"])))


@table("util/TestGetPredicatedNodeByShard.yaml")
def nodes_by_shard(row: Row) -> str | None:
    """What a session counts as its own shard, and that one task after the other goes there first.

    In hard mode no node of another shard passes the filters, so there the nodes of the row are all of the shard.
    """
    names = [each["Name"] for each in row["predicateNodes"]]
    mode, mine = row["shardingMode"], row.get("nodesInShard")
    store = cluster([node(name, cpu=1) for name in names], podgroup("g"), pods("g", len(names)))
    if mode != "none" and mine is not None:
        store.shard = Shard(frozenset(names if mode == "hard" else mine), mode == "hard")
    ssn = opened(store)
    shard = placing_of(ssn).feasible.shard_mask
    mask = np.ones(len(names), dtype=bool) if shard is None else shard
    inside, outside = ([names[i] for i in np.flatnonzero(each).tolist()] for each in (mask, ~mask))
    with ssn.statement() as stmt:
        order = []
        for i in range(len(names)):
            task = row_of(ssn, f"g-{i}")
            chosen = placing_of(ssn).choose(task, placing_of(ssn).feasible.all_nodes).node
            stmt.allocate([task], [chosen])
            order.append(names[chosen])
    return disagreement(order, inside + outside) or disagreement(
        (inside, outside), (row.get("expectedInShard", []), row.get("expectedInOtherShard", []))
    )


# -- nominations


@table("actions-allocate/TestValidateNomination_MissBranches.yaml")
def nomination(row: Row) -> str | None:
    """Whether a gang of one is placed where it is nominated to. Its sub-job is pinned to a hypernode of one node, which
    need not exist."""
    leaf = row["leafNodeName"]
    nodes = [node(name, cpu=f"{row['leafIdleMilliCPU']}m") for name in ("n1", "n-outside")]
    waiting = pod("t", "g", cpu=f"{row['taskResMilliCPU']}m", nominated_node=row.get("taskNominatedNodeName", ""))
    ssn = opened(cluster(nodes, exactly("leaf", 1, [leaf]), podgroup("g"), waiting))
    job = job_row(ssn.tables, waiting.group_key)
    (sub,) = ssn.tables.jobs.subs[job]
    ssn.journal.put(ssn.tables.subs["nominated"], sub, ssn.tables.tree.row_of["leaf"])
    with ssn.statement() as stmt:
        found = try_nomination(ssn, stmt, sub, PendingTasks(ssn, job).sub_queues[sub], OpenAttempt(ssn, job))
        placed = ssn.tables.tasks.node[row_of(ssn, "t")] >= 0
    return disagreement((found, bool(placed)), (row.get("expected", False),) * 2)


# -- backfill


@table("actions-backfill/TestPickUpPendingTasks.yaml")
def tasks_of_backfill(row: Row) -> str | None:
    """Tasks that were promised a node in this session are taken back."""
    promised = decoded(Pod=row["pipelinedPods"])
    store = cluster(
        decoded(PriorityClass=row["PriorityClasses"].values(), Queue=row["queues"], PodGroup=row["podGroups"]),
        node("n"),
        decoded(Pod=row["pendingPods"]),
        promised,
    )
    ssn = opened(store, "priority")
    for each in promised:
        stmt = ssn.statement()
        stmt.pipeline([row_of(ssn, each.name)], [0])
        stmt.keep_uncommitted()
    found = [ssn.tables.tasks.pods[task].name for task in tasks_in_order(ssn)]
    return disagreement(found, row["expectedResult"])
