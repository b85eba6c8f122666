"""Checks of the function tables about jobs in a session: what counts as ready, their phase, what they still want, how
far they may spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.columns.views import Job
from pumice.framework.cycle.closing import close_session
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Kind
from pumice.model.events import Seen
from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode
from pumice.model.workloads.podgroup import NetworkTopology, SubGroupPolicy
from pumice.testing.build import NAMESPACE, cluster, interned, node, pod, podgroup, pods, session
from pumice.volcano.plugins.proportion import Proportion
from pumice.volcano.queues.amounts import queue_amounts
from pumice.volcano.status.closing import UNSCHEDULABLE, conditions
from pumice.volcano.topology.rules import has_hard, job_bound, sub_bound
from tests.conformance.tables.api import resource, topology
from tests.conformance.tables.objects import (
    Raw,
    amount,
    decoded,
    homes,
    in_group,
    job_row,
    member,
    opened,
    row_of,
    take_up,
)
from tests.conformance.tables.table import Row, difference, disagreement, table

_JOB = "test-job"
_BUILT = {"MaxTaskNum": "how the test made the amount that it wants; amounts are compared without it"}


def _with_tasks(tasks: Sequence[Raw], minimum: int, phase: str = "Inqueue", conf: str = "") -> tuple[Session, int]:
    """A session with one job of recorded tasks, each in its state; and the job's row."""
    members = [member(raw, _JOB) for raw in tasks]
    names = {raw["TransactionContext"].get("NodeName", "") for raw in tasks} | {"node-1"}
    nodes = [node(name) for name in sorted(names) if name]
    ssn = opened(cluster(nodes, podgroup(_JOB, minimum, phase=phase), members), conf)
    take_up(ssn, tasks)
    return ssn, job_row(ssn.tables, f"{NAMESPACE}/{_JOB}")


# -- counts and phases


@table("api/TestJobInfo.yaml")
def readiness(row: Row) -> str | None:
    ssn, row_of_job = _with_tasks(row["tasks"], row["jobMinAvailable"])
    job = Job(ssn.tables, row_of_job)
    found = (job.is_ready, job.is_pipelined, job.is_starving, job.best_effort_count)
    wanted = (
        row.get("expectedIsReady", False),
        row.get("expectedIsPipelined", False),
        row.get("expectedIsStarving", False),
        row.get("expectedPendingBestEffortTaskNum", 0),
    )
    return disagreement(found, wanted)


@table("framework/TestGetPodGroupPhase.yaml")
def phase(row: Row) -> str | None:
    """The phase that closing the session leaves."""
    job = row["job"]
    group = job["PodGroup"]["PodGroup"]
    tasks = list(job["Tasks"].values())
    ssn, row_of_job = _with_tasks(tasks, group["spec"]["minMember"], group["status"]["phase"])
    if row.get("unschedulable", False):
        conditions(ssn).set(row_of_job, UNSCHEDULABLE, "NotEnoughResources", "")
    written = {update.job: update.status.phase for update in close_session(ssn).groups}
    return disagreement(written.get(f"{NAMESPACE}/{_JOB}", group["status"]["phase"]), row["expected"])


@table("plugins-gang/TestShouldSkipUnschedulableForReleasing.yaml")
def no_condition_while_tasks_leave(row: Row) -> str | None:
    """Whether closing the session leaves an incomplete gang without the condition."""
    ssn, job = _with_tasks(row["tasks"], row["min"], conf="gang")
    assert not Job(ssn.tables, job).is_ready, "the row is about gangs that are not ready"
    said = conditions(ssn).by_job
    close_session(ssn)
    return disagreement(UNSCHEDULABLE not in said.get(job, {}), row.get("expected", False))


@table("api/TestParseMinMemberInfoChanged.yaml")
def minimum_of_roles(row: Row) -> str | None:
    """A PodGroup comes, then changes."""
    store = cluster(podgroup(_JOB, roles=row["minTaskMemberInitial"]))
    store.snapshot()
    store.apply(Seen(podgroup(_JOB, roles=row["minTaskMemberChanged"])))
    tables = store.snapshot().tables
    job = job_row(tables, f"{NAMESPACE}/{_JOB}")
    found = dict(tables.jobs.groups[job].min_task_member)
    total = row.get("expectedTaskMinAvailableTotal", 0)
    return disagreement((found, int(tables.jobs.role_total[job])), (row["expectedTaskMinAvailable"], total))


# -- what jobs hold and want


@table("api/TestGetElasticResources.yaml", unread=_BUILT)
def elastic(row: Row) -> str | None:
    """What the queue of the one job counts as elastic."""
    group = row["podgroup"]["metadata"]["name"]
    members = in_group(decoded(Pod=row["pods"]), group)
    ssn = opened(cluster(homes(members), decoded(PodGroup=[row["podgroup"]]), members), "proportion")
    proportion = ssn.hooks.plugin("proportion")
    assert isinstance(proportion, Proportion)
    (queue,) = np.flatnonzero(proportion.takes_part)
    return difference(amount(ssn.tables.axis, proportion.elastic.array[queue]), row["want"])


@table("plugins-util/TestGetInqueueResource.yaml")
def promised(row: Row) -> str | None:
    """What is still reserved for a job that holds a part of its minimum; one pod holds it."""
    holder = replace(pod("holder", _JOB, on="n"), spec=interned(PodSpec(resource(row["allocated"]))))
    group = podgroup(_JOB, min_resources=Resource.from_list(row["minRes"]), phase="Inqueue")
    ssn = opened(cluster(Node("n", Resource.from_list(row["minRes"])), group, holder))
    found = queue_amounts(ssn).inqueue.sum(axis=0)
    return difference(amount(ssn.tables.axis, found), row["expected"])


# -- how far a job may spread


def _tree(tiers: dict[str, int], top: int) -> list[HyperNode]:
    """Hypernodes that give these tier names, and a top at this tier."""
    named = [HyperNode(f"h{tier}", tier, (), name) for name, tier in tiers.items()]
    return [*named, *(HyperNode(f"h{tier}", tier) for tier in range(1, top) if tier not in tiers.values())]


def _found(bound: int | None) -> tuple[str, int]:
    return ("", 0) if bound is None else ("hard", bound)


@table("framework/TestAdjustNetworkTopologySpec_SoftToHardConversion.yaml")
def bound_of_a_job(row: Row) -> str | None:
    (job,) = row["jobs"].values()
    (top,) = row["hyperNodes"].values()
    wanted_topology = topology(job["PodGroup"]["PodGroup"]["spec"]["networkTopology"])
    ssn = opened(cluster(_tree(row["nameMap"], top["tier"]), podgroup(_JOB, topology=wanted_topology)))
    return disagreement(_found(job_bound(ssn.tables, 0)), (row["wantJobMode"], row["wantJobTier"]))


@table("framework/TestConvertSoftToHardTopology.yaml")
def bounds_of_sub_jobs(row: Row) -> str | None:
    """Every policy gets a pod, since a sub-job without is none in Pumice. The rows leave out the top: it is tier 4."""
    policies = [_policy(raw) for raw in row.get("subGroupPolicies", ())]
    members = [pod(each.name, _JOB, labels={each.name: "0"}) for each in policies] or pods(_JOB, 1)
    group = podgroup(_JOB, topology=topology(row.get("jobNetworkTopology")), sub_groups=policies)
    ssn = opened(cluster(_tree({}, top=4), group, members))
    subs = {ssn.tables.subs.gids[sub].rpartition("/")[2]: sub for sub in ssn.tables.jobs.subs[0]}
    bounds = [_found(sub_bound(ssn.tables, subs[each.name])) for each in policies]
    bounds = [each for each in bounds if each != ("", 0)]
    mode, tier = _found(job_bound(ssn.tables, 0))
    found = (has_hard(ssn.tables, 0), mode, tier, [m for m, _ in bounds], [t for _, t in bounds])
    wanted = (
        row.get("wantContainsHardTopology", False),
        row.get("wantJobMode", ""),
        row.get("wantJobTier", 0),
        row.get("wantSubGroupPolicyModes", []),
        row.get("wantSubGroupPolicyTiers", []),
    )
    return disagreement(found, wanted)


def _policy(raw: Raw) -> SubGroupPolicy:
    return SubGroupPolicy(
        raw["name"], topology(raw.get("networkTopology")), raw["subGroupSize"], match_label_keys=(raw["name"],)
    )


@table(
    "framework/TestSession_adjustNetworkTopologySpec.yaml",
    unread={"highestTierName": "Volcano blanks it in its copy of the object; Pumice leaves objects as they are"},
)
def bounds_by_tier_name(row: Row) -> str | None:
    """The topology of the job, its policy and its sub-job, each as that of a job: the last two need not be the same."""
    (given,), (wanted,) = row["jobs"].values(), row["expectedJobs"].values()
    groups = [podgroup(f"job-{i}", topology=wanted_topology) for i, wanted_topology in enumerate(_topologies(given))]
    ssn = opened(cluster(_tree(row["nameMap"], top=4), groups))
    found = [job_bound(ssn.tables, job_row(ssn.tables, group.key)) for group in groups]
    return disagreement(
        found, [wanted_topology.highest_tier if wanted_topology else None for wanted_topology in _topologies(wanted)]
    )


def _topologies(job: Raw) -> list[NetworkTopology | None]:
    spec_of_group = job["PodGroup"]["PodGroup"]["spec"]
    (policy,) = spec_of_group["subGroupPolicy"]
    (sub_job,) = job["SubJobs"].values()
    return [
        topology(raw)
        for raw in (spec_of_group["networkTopology"], policy["networkTopology"], sub_job["NetworkTopology"])
    ]


# -- statements


@table("framework/TestStatementHasEvictions.yaml")
def has_evictions(row: Row) -> str | None:
    """Volcano's kinds of operation: 0 (left out of the recording) evicts, 1 pipelines, 2 allocates."""
    operations: list[dict[str, Any]] = row.get("operations", [])
    tasks = [pod(f"{_JOB}-{i}", _JOB, on="" if raw.get("name") else "n") for i, raw in enumerate(operations)]
    ssn = session(cluster(node("n"), podgroup(_JOB), tasks))
    with ssn.statement() as stmt:
        for i, raw in enumerate(operations):
            task = row_of(ssn, f"{_JOB}-{i}")
            match raw.get("name", 0):
                case 0:
                    stmt.evict([task], raw["reason"])
                case 1:
                    stmt.pipeline([task], [0])
                case 2:
                    stmt.allocate([task], [0])
        found = any(operation.kind is Kind.EVICT for operation in stmt.save())
    return disagreement(found, row.get("want", False))
