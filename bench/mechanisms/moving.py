"""Large clusters that change: before each cycle some gangs end and as many are created, and decisions come true.

Gangs of two run from several hundred queues, and several hundred jobs wait: half of them fit on no node, the others ask
for more than may be admitted. Everything follows from numbers, and nothing is random.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.devices.gpu import GpuShare
from pumice.model.devices.numa import Cpu, NumaAsk, Numatopology
from pumice.model.events import Gone, Object, Seen
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue, QueueSharing, Quota
from pumice.model.usage import NodeUsage
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.runtime.digest import Digest
from pumice.runtime.loop import ListPlanner
from pumice.runtime.measure import carry_out
from pumice.runtime.memory import leave_old_objects_alone
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import NAMESPACE, budget, node, podgroup, pods, queue, resource

#: Gangs that end, and as many that are created, before each cycle.
CHANGING = 10
_FREE = Quota(None, None, 1.0)
_HALF = GpuShare(0.5)


class Moving(Struct, frozen=True):
    """``full``: pods fill the cluster, none ends, and new gangs have a higher priority. ``reports``: there are budgets,
    cooldowns, measured use and NUMA topologies, and half of the pods want CPUs of their own. ``shares``: half of the
    new pods share GPUs. ``tree``: queues below others, with amounts that they deserve."""

    nodes: int = 1_000
    queues: int = 300
    waiting: int = 600
    cycles: int = 30
    full: bool = False
    reports: bool = False
    shares: bool = False
    tree: bool = False


def decide(plan: Moving, conf: str) -> str:
    """Run the cycles of a plan under a policy file, and return the digest of their decisions."""
    policy = policy_of(conf, builtin_registry())
    cluster, memo, digest = _Cluster(plan, kai=policy.dialect.name == "kai"), Memo(), Digest()
    leave_old_objects_alone()
    for i in range(plan.cycles):
        cluster.change()
        cluster.cycle(policy, float(100_000 + i), memo, digest)
    return digest.hex


class _Cluster:
    """The cluster of a plan, and what runs on it."""

    def __init__(self, plan: Moving, *, kai: bool) -> None:
        self.plan, self.kai = plan, kai
        self.scheduler = "kai-scheduler" if kai else "volcano"
        self.store = Store(scheduler_names=(self.scheduler,))
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.created = self.ended = 0
        for obj in (*_nodes(plan), *(_kai_queues(plan) if kai else _queues(plan)), PriorityClass("high", 100)):
            self.add(obj)
        running = plan.nodes * (8 if plan.full else 5) // 2
        for i in range(running):
            self.gang(on=f"n{i % plan.nodes:05}", cpu=2, gpu=1)
        for i in range(plan.waiting):
            if i % 2:
                self.gang(cpu=20 + i % 7, least=1 + i % 20)
            else:
                self.gang(cpu=20 + i % 7, phase="Inqueue")
        self.store.take_in()

    def add(self, obj: Object) -> None:
        if isinstance(obj, Pod):
            self.pods[obj.key] = obj
        elif isinstance(obj, PodGroup):
            self.groups[obj.key] = obj
        self.store.apply(Seen(obj))

    def gang(
        self, cpu: int, gpu: int = 0, *, on: str = "", phase: str = "Pending", least: int = 0, high: bool = False
    ) -> None:
        """Create a gang that runs ``on`` a node, or waits. ``least``: it may be admitted if there are so many more
        clusters. A gang with a phase has been admitted and promises nothing."""
        i, plan = self.created, self.plan
        self.created += 1
        name = f"g{i:06}"
        asked = resource(cpu=(least + 1) * 16 * plan.nodes) if least else resource(cpu=2 * cpu)
        more: dict[str, Any] = (
            {"gang": Gang()} if self.kai else {"min_resources": asked if phase == "Pending" else None}
        )
        more |= {"status": PodGroupStatus("Running" if on else phase, running=2 * bool(on))}
        # Of a gang with a higher minimum, no single pod may be evicted.
        minimum = 1 if plan.full else 2
        self.add(
            podgroup(name, minimum, f"q{i % plan.queues:03}", creation=i, priority_class="high" if high else "", **more)
        )
        labels = {"app": f"a{i % 50}"} | ({"volcano.sh/cooldown-time": "20s"} if plan.reports and i % 4 == 1 else {})
        wants: dict[str, Any] = {"cpu": cpu, "gpu": gpu}
        if plan.shares and not on and i % 2:
            wants = {"cpu": cpu, "gpu_share": _HALF}
        if plan.reports and i % 2:
            wants |= {"qos": "Guaranteed", "numa": NumaAsk("", (("main", 1000.0 * cpu),))}
        for each in pods(name, 2, on=on, labels=labels, creation=i, priority=100 * high, **wants):
            self.add(replace(each, scheduler_name=self.scheduler))

    def change(self) -> None:
        """End the oldest gangs, and create as many."""
        for _ in range(CHANGING):
            if not self.plan.full:
                name = f"g{self.ended:06}"
                self.ended += 1
                for key in [f"{NAMESPACE}/{name}-{k}" for k in range(2)]:
                    if self.pods.pop(key, None) is not None:
                        self.store.apply(Gone(Pod, key))
                self.groups.pop(f"{NAMESPACE}/{name}")
                self.store.apply(Gone(PodGroup, f"{NAMESPACE}/{name}"))
            self.gang(cpu=2, gpu=1, high=self.plan.full)

    def cycle(self, policy: Policy, now: float, memo: Memo, digest: Digest) -> None:
        """Run a cycle, and carry out what it decides."""
        planner = ListPlanner()
        outcome = run_cycle(self.store.snapshot(now), policy, now, planner, memo=memo)
        digest.add(now, planner.taken)
        carry_out(self.store, outcome, planner.taken, self.pods, self.groups)


def _nodes(plan: Moving) -> Iterator[Object]:
    for i in range(plan.nodes):
        yield node(name := f"n{i:05}", cpu=16, memory="64Gi", gpu=8)
        if plan.reports:
            yield NodeUsage(name, float(i % 90), float(i % 70), 100_000.0)
            cpus = tuple(Cpu(k, k // 8, k // 8, k) for k in range(16))
            yield Numatopology(name, "static", "single-numa-node", cpus, tuple(range(4, 16)))
    for i in range(50 if plan.reports else 0):
        yield budget(f"b{i}", {"app": f"a{i}"}, allowed=i % 3)


def _queues(plan: Moving) -> Iterator[Queue]:
    share = 16 * plan.nodes // plan.queues
    if plan.tree:
        yield queue("root")
        yield from (queue(f"top{k}", parent="root") for k in range(10))
    for i in range(plan.queues):
        more = {"parent": f"top{i % 10}", "deserved": resource(cpu=share, memory=f"{4 * share}Gi", gpu=share // 2)}
        yield queue(f"q{i:03}", 1 + i % 4, **(more if plan.tree else {}))


def _kai_queues(plan: Moving) -> Iterator[Queue]:
    share = 8000.0 * plan.nodes / plan.queues
    yield queue("top", priority=100, sharing=QueueSharing(_FREE, _FREE, _FREE))
    for i in range(plan.queues):
        yield queue(f"q{i:03}", parent="top", priority=100, sharing=QueueSharing(_FREE, _FREE, Quota(share, None, 1.0)))
