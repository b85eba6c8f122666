"""One cycle over objects or a snapshot, with everything that users ask about it afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from pumice.columns.snapshot import Snapshot
from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import Blocker
from pumice.model.decisions import CLAIMS, Bind, ClaimGrant, Decision, Evict, device_grant
from pumice.model.events import Object, Seen
from pumice.model.pod import ENDED, Pod
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.reasons.blockers import blockers_of
from pumice.reasons.hints import hints, hints_outside
from pumice.reasons.nearest import NearestBlockers, why_pods_wait
from pumice.runtime.digest import Digest
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store

SCHEDULER_NAMES = ("volcano",)


class Answer(Struct, frozen=True):
    """The result. ``nearest``: what is nearest in the way of its jobs. ``objects``: those that were decided on.
    ``scheduler_names``: of which pods.

    ``pipelined``: (pod -> node), reservations of resources that others release. ``unscheduled``: (pod -> why), all pods
    that wait without one. ``statuses``: of all PodGroups, after the cycle.
    """

    outcome: Outcome
    nearest: NearestBlockers
    objects: Sequence[Object]
    scheduler_names: Sequence[str] | None
    decisions: tuple[Decision, ...]
    digest: str
    pipelined: Mapping[str, str]
    statuses: Mapping[str, PodGroupStatus]
    unscheduled: Mapping[str, str]

    @property
    def hints(self) -> dict[str, str]:
        """By PodGroup key: what would help, for each waiting job for which that is known, as a whole sentence."""
        return hints(self.nearest, whole=True) | hints_outside(self.objects, self.scheduler_names)

    @property
    def blockers(self) -> dict[str, tuple[Blocker, ...]]:
        """By PodGroup key: the blockers of each waiting job of the session."""
        return blockers_of(self.outcome)

    @property
    def binds(self) -> dict[str, str]:
        return {decision.pod: decision.node for decision in self.decisions if isinstance(decision, Bind)}

    @property
    def devices(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """By pod key: the devices that its bind gives it; pods without any are left out.

        ``gpu_groups``: groups of pods that share a GPU, one a device. Other keys are claims, with
        ``driver/pool/device``.
        """
        found = {each.pod: _devices(each) for each in self.decisions if isinstance(each, Bind)}
        return {pod: devices for pod, devices in found.items() if devices}

    @property
    def evicts(self) -> list[Evict]:
        return [decision for decision in self.decisions if isinstance(decision, Evict)]


def schedule_once(
    objects: Sequence[Object], policy: Policy, now: float, scheduler_names: Sequence[str] = SCHEDULER_NAMES
) -> Answer:
    """Run one cycle at ``now`` (seconds since the epoch) on the objects.

    ``scheduler_names``: of the pods to be placed.
    """
    store = Store(scheduler_names=scheduler_names)
    store.keep_usage(policy.usage_windows)
    for obj in objects:
        store.apply(Seen(obj))
    return decide(store.snapshot(now), policy, now, objects, scheduler_names)


def decide(
    snapshot: Snapshot,
    policy: Policy,
    now: float,
    objects: Sequence[Object],
    scheduler_names: Sequence[str] | None = None,
) -> Answer:
    """Run one cycle at ``now`` (seconds since the epoch) on a snapshot.

    ``objects``: those about which users ask. ``scheduler_names``: of the pods to be placed, None: all.
    """
    planner = ListPlanner()
    outcome = run_cycle(snapshot, policy, now, planner)
    digest = Digest()
    digest.add(now, planner.taken)
    groups = {obj.key: obj for obj in objects if isinstance(obj, PodGroup)}
    statuses = {key: group.status for key, group in groups.items()}
    statuses |= {update.job: update.status for update in outcome.groups}
    pipelined = outcome.pipelined
    placed = {decision.pod for decision in planner.taken if isinstance(decision, Bind)} | pipelined.keys()
    nearest = NearestBlockers(outcome)
    return Answer(
        outcome,
        nearest,
        objects,
        scheduler_names,
        tuple(planner.taken),
        digest.hex,
        pipelined,
        statuses,
        _unscheduled(objects, groups, placed, why_pods_wait(nearest), scheduler_names),
    )


def _devices(bind: Bind) -> dict[str, tuple[str, ...]]:
    shared, claims = device_grant(bind), bind.context.get(CLAIMS)
    found = {"gpu_groups": shared.gpu_groups} if shared is not None and shared.gpu_groups else {}
    for grant in claims if isinstance(claims, tuple) else ():
        # A claim that has its devices already is left out: no bind gives them.
        if isinstance(grant, ClaimGrant) and grant.allocation is not None:
            given = grant.allocation.devices
            found[grant.claim] = tuple(f"{each.driver}/{each.pool}/{each.device}" for each in given)
    return found


def _unscheduled(
    objects: Iterable[Object],
    groups: Mapping[str, PodGroup],
    placed: Iterable[str],
    why: Mapping[str, str],
    scheduler_names: Sequence[str] | None,
) -> dict[str, str]:
    """Return every pod without a node, in the session or not, with why it waits."""
    done = frozenset(placed)
    found = {}
    for pod in objects:
        if isinstance(pod, Pod) and not pod.node_name and pod.phase not in ENDED and pod.key not in done:
            found[pod.key] = why.get(pod.key) or _not_ours(pod, groups, scheduler_names)
    return found


def _not_ours(pod: Pod, groups: Mapping[str, PodGroup], scheduler_names: Sequence[str] | None) -> str:
    """Return why a pod was not part of the session."""
    if scheduler_names is not None and pod.scheduler_name not in scheduler_names:
        return f"belongs to another scheduler: {pod.scheduler_name}"
    if pod.deletion is not None:
        return "is being deleted"
    group = groups.get(pod.group_key)
    if group is None:
        return f"PodGroup {pod.group_key} is not there" if pod.group_key else "names no PodGroup"
    return f"queue {group.queue} is not there"
