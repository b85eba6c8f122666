"""Fill an empty cluster pod by pod until more has been requested than it has: how much of its GPUs a policy allocates,
and how much of the rest typical pods cannot use.

A fill is one cycle on an empty cluster in which all pods wait, in order of arrival. No pod leaves, so a pod that finds
no node never will. Order: all pods of the trace, shuffled, then pods drawn from it with replacement. Source: Weng et
al., USENIX ATC'23, section 6, and its artifact. Taken from it: the order of arrivals by seed, the names of nodes
(shuffled, because the first name wins a tie), typical pods (those of the trace), and how curves are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.algorithms.go_random import GoRandom
from pumice.columns.dtypes import F64
from pumice.columns.gpus.devices import SLOTS_MAX
from pumice.cycle import run_cycle
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import GPU_GROUPS, Bind
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.events import Object, Seen
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup
from pumice.ours.fragments import WHOLE, Ask
from pumice.ours.typical_pods import TypicalPods, written
from pumice.runtime.loop import ListPlanner
from pumice.runtime.memory import old_objects_left_alone
from pumice.state.store import Store

SCHEDULER, NAMESPACE, QUEUE = "kai-scheduler", "fill", "fill"
#: Bounds of one fill.
UNTIL_MAX, PODS_MAX = 10.0, 1_000_000

#: The study's scheduler creates this many watches between pods and nodes, and draws a number for each.
WATCHES = 10

_MILLI = 1000.0
_UNLIMITED = Quota(None, None, 1.0)


class Arrivals(Struct, frozen=True):
    """What arrives at a cluster: ``specs`` in order, and ``gpus`` (pods,), the request of each in milli-devices.
    ``nodes``: with the names that they have in this fill."""

    nodes: tuple[Node, ...]
    specs: tuple[PodSpec, ...]
    gpus: tuple[float, ...]

    @property
    def capacity(self) -> float:
        """Milli-devices of all nodes."""
        return sum(node.allocatable.get(GPU_RESOURCE) for node in self.nodes)


class FillResult(Struct, frozen=True):
    """The result of a fill. ``node_of``: node of each pod, None if it found none. ``groups``: devices that it shares
    there. ``arrived``, ``allocated``: milli-devices after each pod."""

    arrivals: Arrivals
    node_of: tuple[str | None, ...]
    groups: tuple[tuple[str, ...], ...]
    arrived: tuple[float, ...]
    allocated: tuple[float, ...]

    def allocation(self) -> list[float]:
        """Return the percentage of the cluster's GPUs that is allocated when 0, 1, 2 … per cent have been requested:
        the mean over the arrivals that round to it, nan if there are none near it. Two digits, as published."""
        return self.curve(np.array(self.allocated) / self.arrivals.capacity * 100.0)

    def curve(self, values: F64) -> list[float]:
        """Return such a curve for any value after each pod."""
        asked = np.rint(np.array(self.arrived) / self.arrivals.capacity * 100.0)
        found = []
        for level in range(int(asked.max(initial=0.0)) + 1):
            at = asked == level
            at = at if at.any() else np.abs(asked - level) <= 1
            found.append(round(float(np.round(values[at], 2).mean()), 2) if at.any() else float("nan"))
        return found


def policy_text(name: str, seed: int, typical: Iterable[TypicalPods] = ()) -> str:
    """Return the policy file by which a cluster is filled: order of arrival, no limits. ``typical``: the expected pods;
    none: those that arrive."""
    return f"""\
dialect: kai
actions: allocate
tiers:
- plugins:
  - name: predicates
  - name: gpuplacement
    arguments:
      policy: {name}
      seed: {seed}
      typical: |
{indent(written(typical), " " * 8)}"""


def typical_of(specs: Iterable[PodSpec]) -> list[TypicalPods]:
    """Return what the pods of a trace request, and how many request the same, in the order of their first arrival."""
    pods: dict[tuple[Ask, tuple[str, ...]], float] = {}
    known: dict[int, tuple[Ask, tuple[str, ...]]] = {}
    for spec in specs:
        key = known.get(id(spec))
        if key is None:
            key = known[id(spec)] = ask_of_spec(spec), models_of(spec)
        pods[key] = pods.get(key, 0.0) + 1.0
    return [TypicalPods(count, ask, models) for (ask, models), count in pods.items()]


def ask_of_spec(spec: PodSpec) -> Ask:
    """Return what a pod requests."""
    gpus = spec.milli_gpus
    shares = spec.gpu_share is not None
    return Ask(spec.request.milli_cpu, 1 if shares else round(gpus / WHOLE), gpus if shares else WHOLE * (gpus > 0))


def models_of(spec: PodSpec) -> tuple[str, ...]:
    """Return the GPU models that a pod names, none if any will do."""
    terms = spec.affinity.node_required or ()
    return tuple(sorted({value for term in terms for each in term.labels for value in each.values}))


def arrivals_of(specs: Sequence[PodSpec], nodes: Sequence[Node], until: float, seed: int) -> Arrivals:
    """Return pods of a trace, shuffled, then more of them, drawn with replacement, until they request ``until`` times
    the cluster's GPUs.

    If the trace alone requests more, randomly drawn pods are left out. With pods and nodes in the order of their names,
    as in the trace, the arrivals are those of the study with that seed. Raises: ValueError if no pod requests GPUs, no
    node has any, or there would be too many pods.
    """
    capacity = sum(node.allocatable.get(GPU_RESOURCE) for node in nodes)
    asked = [spec.milli_gpus for spec in specs]
    total, limit = sum(asked), until * capacity
    if total <= 0 or capacity <= 0:
        raise ValueError("no pod asks for GPUs" if total <= 0 else "no node has GPUs")
    if any(node.allocatable.get(GPU_RESOURCE) > _MILLI * SLOTS_MAX for node in nodes):
        raise ValueError(f"a node has more than {SLOTS_MAX} GPUs")
    if len(specs) * max(1.0, limit / total) > PODS_MAX:
        raise ValueError(f"more than {PODS_MAX:,} pods would have to arrive")
    dice = GoRandom(seed)
    dice.int63()  # the study logs a number
    order = _arriving([ask_of_spec(spec).milli for spec in specs], asked, limit, dice)
    for _ in range(WATCHES):
        dice.int63()
    ranks = dice.permutation(len(nodes))
    named = tuple(replace(node, name=f"{rank:06d}-{node.name}") for rank, node in zip(ranks, nodes, strict=True))
    return Arrivals(named, tuple(specs[i] for i in order), tuple(asked[i] for i in order))


def _arriving(millis: Sequence[float], asked: Sequence[float], limit: float, dice: GoRandom) -> list[int]:
    """Return which pods arrive, in order. The last one is drawn by a single GPU of it (``millis``), as in the study:
    with pods that request several, the total may exceed ``limit``."""
    order, total = dice.shuffled(len(asked)), sum(asked)
    if total >= limit:
        while total > limit:
            total -= asked[order.pop(dice.below(len(order)))]
        return order
    while len(order) < PODS_MAX and total + millis[drawn := dice.below(len(asked))] <= limit:
        total += asked[drawn]
        order.append(drawn)
    return order


def fill(arrivals: Arrivals, policy: Policy) -> FillResult:
    """Place the arrivals, in order, by a policy in KAI's language."""
    store = Store(scheduler_names=(SCHEDULER,))
    for obj in _objects(arrivals):
        store.apply(Seen(obj))
    store.take_in()
    planner = ListPlanner()
    with old_objects_left_alone():
        run_cycle(store.snapshot(), policy, float(len(arrivals.specs)), planner)
    binds = {bind.pod: bind for bind in planner.taken if isinstance(bind, Bind)}
    found = [binds.get(f"{NAMESPACE}/{_name(i)}") for i in range(len(arrivals.specs))]
    taken = [gpus if bind is not None else 0.0 for gpus, bind in zip(arrivals.gpus, found, strict=True)]
    return FillResult(
        arrivals,
        tuple(None if bind is None else bind.node for bind in found),
        tuple(_groups(bind) for bind in found),
        tuple(np.cumsum(arrivals.gpus).tolist()),
        tuple(np.cumsum(taken).tolist()),
    )


def _groups(bind: Bind | None) -> tuple[str, ...]:
    found = bind.context.get(GPU_GROUPS) if bind is not None else None
    return found if isinstance(found, tuple) else ()


def _name(i: int) -> str:
    return f"pod-{i:07d}"


def _objects(arrivals: Arrivals) -> Iterator[Object]:
    """Yield the cluster, one queue without limits, and a job of one pod for each arrival, one second apart."""
    yield from arrivals.nodes
    yield Queue(QUEUE, priority=100, sharing=QueueSharing(_UNLIMITED, _UNLIMITED, _UNLIMITED))
    for i, spec in enumerate(arrivals.specs):
        name, creation = _name(i), float(i)
        yield PodGroup(NAMESPACE, name, name, QUEUE, min_member=1, creation=creation, gang=Gang())
        yield Pod(
            NAMESPACE,
            name,
            name,
            spec,
            creation,
            annotations={GROUP_NAME_ANNOTATION: name},
            scheduler_name=SCHEDULER,
        )
