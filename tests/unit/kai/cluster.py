"""Small clusters in KAI's words, and one cycle on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.decisions import Bind, Decision, Evict, Refusal
from pumice.model.events import Object, Seen
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue, QueueSharing, Quota
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus
from pumice.model.workloads.gang import SUB_GROUP_LABEL, Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store

NOW = 1_000_000.0
GPU = "nvidia.com/gpu"
FREE = Quota(None, None, 1.0)
PLUGINS = (
    *("predicates", "proportion", "priority", "elastic", "nodeavailability", "resourcetype", "taskorder"),
    *("nodeplacement", "topology", "subgrouporder"),
)
ALL = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")


def node(name: str, gpus: int = 8, *, labels: Mapping[str, str] | None = None, pods: int = 110) -> Node:
    scalars = {"pods": float(pods), **({GPU: 1000.0 * gpus} if gpus else {})}
    return Node(name, Resource(64_000.0, 1e12, scalars, pods), labels=labels or {})


def queue(name: str, quota: float | None = None, parent: str = "", *, limit: float | None = None, **more: Any) -> Queue:
    """``quota`` and ``limit`` in GPUs, None without bound."""
    gpu = Quota(*(None if amount is None else 1000.0 * amount for amount in (quota, limit)), more.pop("weight", 1.0))
    runtimes = {key: more.pop(key) for key in ("preempt_min_runtime", "reclaim_min_runtime") if key in more}
    return Queue(
        name,
        parent=parent,
        priority=more.pop("priority", 100),
        sharing=QueueSharing(FREE, FREE, gpu, **runtimes),
        **more,
    )


def job(
    name: str,
    of: str,
    tasks: Sequence[str],
    gpus: int = 1,
    *,
    minimum: int | None = None,
    priority: int = 50,
    age: float = 0.0,
    sub_groups: Iterable[SubGroup] = (),
    topology: TopologyConstraint | None = None,
    labels: Mapping[int, Mapping[str, str]] | None = None,
    pod: Mapping[str, Any] | None = None,
    **gang: Any,
) -> list[Object]:
    """A pod group and its pods: one for each of ``tasks``, the node that it runs on, empty where it waits; with a
    ``/name`` behind it, in that pod set."""
    parts = [each.partition("/") for each in tasks]
    group = PodGroup(
        "ns",
        name,
        name,
        of,
        len(tasks) if minimum is None else minimum,
        priority_class_name=f"p{priority}",
        creation=NOW - age,
        gang=Gang(tuple(sub_groups), topology, **gang),
    )
    scalars = {"pods": 1.0, **({GPU: 1000.0 * gpus} if gpus else {})}
    spec = PodSpec(Resource(1000.0, 1e9, scalars))
    pods = [
        Pod(
            "ns",
            f"{name}-{i}",
            f"{name}-{i}",
            spec,
            labels={**({SUB_GROUP_LABEL: pod_set} if pod_set else {}), **(labels or {}).get(i, {})},
            annotations={GROUP_NAME_ANNOTATION: name},
            scheduler_name="kai-scheduler",
            node_name=on,
            phase="Running" if on else "Pending",
            **(pod or {}),
        )
        for i, (on, _, pod_set) in enumerate(parts)
    ]
    return [PriorityClass(f"p{priority}", priority), group, *pods]


def store(*objects: Object | Iterable[Object]) -> Store:
    found = Store(scheduler_names=("kai-scheduler",))
    for each in objects:
        for obj in [each] if isinstance(each, Object) else each:
            found.apply(Seen(obj))
    return found


def policy(
    actions: Iterable[str] = ALL, plugins: Iterable[str | Mapping[str, Any]] = PLUGINS, **settings: Any
) -> Policy:
    """``settings``: arguments of actions by name; consolidation may move any job unless they say otherwise."""
    sections = settings.pop("sections", {})
    settings = {"consolidation": {"maxConsolidationPreemptees": -1}} | settings
    return read_policy(
        {
            "dialect": "kai",
            "actions": ", ".join(actions),
            "tiers": [{"plugins": [{"name": each} if isinstance(each, str) else dict(each) for each in plugins]}],
            "configurations": [{"name": name, "arguments": values} for name, values in settings.items()],
            **sections,
        },
        builtin_registry(),
    )


@dataclass(slots=True)
class Planner:
    refuses: frozenset[str] = frozenset()
    taken: list[Decision] = field(default_factory=list)

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        refused = {i: Refusal("no") for i, each in enumerate(decisions) if each.pod.removeprefix("ns/") in self.refuses}
        self.taken += [each for i, each in enumerate(decisions) if i not in refused]
        return refused


class Ran(Struct, frozen=True):
    outcome: Outcome
    decisions: list[Decision]

    @property
    def binds(self) -> dict[str, str]:
        return {each.pod.removeprefix("ns/"): each.node for each in self.decisions if isinstance(each, Bind)}

    @property
    def evicted(self) -> list[str]:
        return [each.pod.removeprefix("ns/") for each in self.decisions if isinstance(each, Evict)]

    @property
    def states(self) -> dict[str, str]:
        """State@node of every task when the cycle was over."""
        tables = self.outcome.tables
        tasks, names = tables.tasks, tables.nodes.facts.names
        return {
            tasks.pods[row].name: TaskStatus(int(tasks.status[row])).label
            + (f"@{names[tasks.node[row]]}" if tasks.node[row] >= 0 else "")
            for row in tasks.alive.nonzero()[0].tolist()
        }


def cycle(found: Store, under: Policy | None = None, refuses: Iterable[str] = ()) -> Ran:
    planner = Planner(frozenset(refuses))
    outcome = run_cycle(found.snapshot(), under or policy(), NOW, planner, memo=Memo())
    assert not outcome.faults
    return Ran(outcome, planner.taken)


def opened(found: Store, under: Policy | None = None) -> Session:
    """A session on the cluster, for trying single steps."""
    ssn = Session(found.snapshot(), under or policy(), NOW, Planner(), Memo())
    ssn.open()
    return ssn


def rows_of(ssn: Session) -> dict[str, int]:
    """Rows of tasks by the name of the pod."""
    pods, alive = ssn.tables.tasks.pods, ssn.tables.tasks.alive.nonzero()[0].tolist()
    return {pods[row].name: row for row in alive}
