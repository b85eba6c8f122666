"""Safety laws, checked on the state of the API server and never on the scheduler's own sums. For tests.

S1 no node is overcommitted, and no queue holds more than its capability. S2 no bind unless the gang's minimum is bound
by the same cycle. S3 no pod is bound twice, or to a node that does not exist. S4 no pod is lost. S5 to S7 and S14 are
about evictions (``sim.laws.evictions``). S9 sums that are kept up to date equal sums that are computed again. S11 and
S12, about gangs that hold nodes below their minimum, are in ``sim.laws.partially_bound``, and S13, about shared cards,
in ``sim.laws.cards``. S15 is about reservations (``sim.laws.reservations``), S17 about binds that wait
(``sim.laws.queued_binds``). S19 no PodGroup has the conditions Scheduled and Unschedulable at once. Each check examines
the whole cluster.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from pumice.model.decisions import Bind, Decision, Refusal
from pumice.model.plain_words import first_names
from pumice.model.pod import ENDED, Pod
from pumice.model.resources import MIN_RESOURCE, PODS
from pumice.model.selectors import matches
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup
from pumice.model.workloads.subgroups import SubJobKey, sub_job_of
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.laws.cards import overcommitted_card
from pumice.sim.laws.evictions import EvictionLaws
from pumice.sim.laws.partially_bound import PartiallyBoundLaws
from pumice.sim.laws.queued_binds import QueuedBindLaws
from pumice.sim.laws.reservations import ReservationLaws
from pumice.sim.measures.node_usage import Usage, amounts_of

_NAMES_SHOWN = 5
_OPPOSITES = frozenset({"Scheduled", "Unschedulable"})

Totals = defaultdict[str, dict[str, float]]


class LawBroken(AssertionError):
    """A broken law: which law, which object, which numbers."""


class Laws:
    """Watches a cluster. Call ``after_event`` after every event and ``after_cycle`` after every cycle.

    ``known``: pods that the scheduler knows of, asked after cycles (S4). ``usage``: sums to compare with recomputed
    ones (S9). ``topology`` False: no plugin of the policy keeps gangs within HyperNodes. ``queue_limits`` False: none
    keeps queues within their capability. ``partial_gangs_first``: one lets gangs that hold nodes below their minimum go
    before equal ones. ``one_condition``: one keeps conditions of gangs from contradicting each other.
    ``scheduler_names``: the scheduler must know pods with these names. ``evictions``: laws of evictions that hold.
    ``reservations``: that of reservations, if it holds.
    """

    def __init__(
        self,
        cluster: SimCluster,
        controller: Controller | None = None,
        *,
        usage: Usage | None = None,
        known: Callable[[], Container[str]] | None = None,
        topology: bool = True,
        queue_limits: bool = True,
        partial_gangs_first: bool = False,
        one_condition: bool = False,
        scheduler_names: Container[str] = ("volcano",),
        evictions: EvictionLaws | None = None,
        reservations: ReservationLaws | None = None,
    ) -> None:
        self.cluster = cluster
        self.controller = controller
        self.usage = usage
        self.known = known
        self.topology = topology
        self.queue_limits, self.one_condition = queue_limits, one_condition
        self.scheduler_names = scheduler_names
        self.evictions = evictions
        self.reservations = reservations
        self.checks = 0
        self._node_of: dict[str, str] = {}  # uid -> node, of every pod ever bound
        self._asked: dict[str, Bind] = {}  # by pod key, in this cycle
        self._refused: set[str] = set()  # of these, those that were refused last: they may be tried again
        self._queued = QueuedBindLaws(cluster)
        self._partial_gangs = (
            PartiallyBoundLaws(cluster, self._is_in_doubt, queues_limit=queue_limits) if partial_gangs_first else None
        )
        cluster.hooks.answered.append(self._answered)

    def after_event(self) -> None:
        """Check S1, S3, S4, S9, S13 and S17 on the present state. Raises: LawBroken."""
        self.checks += 1
        used = self._recomputed()
        self._no_overcommit(used)
        broken = overcommitted_card(self.cluster.nodes, self._placed())
        if broken:
            raise LawBroken(f"S13: {broken}")
        self._bound_once()
        self._none_lost()
        if of_queued := self._queued.check():
            raise LawBroken(of_queued)
        if self.usage is not None:
            self._sums_agree(self.usage, used)

    def after_cycle(self, decisions: Sequence[Decision] = ()) -> None:
        """Check S2 for the binds that this cycle asked for, and all that ``after_event`` checks. Raises: LawBroken."""
        asked, self._asked, self._refused = self._asked, {}, set()
        for decision in decisions:
            if isinstance(decision, Bind) and decision.pod not in asked:
                raise LawBroken(f"S3: {decision.pod} is reported as bound to {decision.node} without a decision")
        gangs = {bind.job for bind in asked.values()}
        members: dict[str, list[Pod]] = defaultdict(list)
        held = self.cluster.undelivered.held_pods()  # on their nodes, as far as the scheduler can know
        left = self.evictions.evicted_now() if self.evictions is not None else {}  # after these binds, or before
        for pod in (self.cluster.decided_pods() | held | left).values():
            if pod.group_key in gangs:
                members[pod.group_key].append(pod)
        for job in sorted(gangs):
            group = self.cluster.groups.get(job)
            if group is not None:  # it may have gone while the news of it was held back
                self._gang_is_whole(group, members[job], asked)
        if self.queue_limits:
            self._queues_within_limits(gangs)
        self._all_known()
        broken_here = self._partial_gangs.broken(asked) if self._partial_gangs is not None else ()
        of_evictions = self.evictions.check() if self.evictions is not None else ""
        of_reservations = self.reservations.check() if self.reservations is not None else ""
        for broken in (*broken_here, *filter(None, (of_evictions, of_reservations))):
            raise LawBroken(broken)
        if self.one_condition:
            self._conditions_agree()
        self.after_event()

    def _conditions_agree(self) -> None:
        """Check S19."""
        for key, group in self.cluster.groups.items():
            said = {each.type for each in group.status.conditions if each.status == "True"}
            if said >= _OPPOSITES:
                raise LawBroken(f"S19: gang {key} has the conditions {' and '.join(sorted(_OPPOSITES))}, both True")

    # -- S1, S9 --------------------------------------------------------------------------------------------------------

    def _is_in_doubt(self, key: str) -> bool:
        """Return True if the scheduler may not know the present state of a pod, or its bind waits to be sent."""
        queued = self.cluster.queued
        return self.cluster.undelivered.owes(Pod, key) or (queued is not None and queued.of(key) is not None)

    def _recomputed(self) -> Totals:
        """Return what pods use of each node, including those that are leaving."""
        return _totals((pod.node_name, pod) for pod in self._placed())

    def _placed(self) -> Iterator[Pod]:
        """Return the pods that hold resources."""
        return (pod for pod in self.cluster.pods.values() if pod.node_name and pod.phase not in ENDED)

    def _no_overcommit(self, used: Totals) -> None:
        for name, taken in used.items():
            node = self.cluster.nodes.get(name)
            if node is None:
                raise LawBroken(f"S3: pods are on node {name}, which does not exist: {self._pods_on(name)}")
            for resource, amount in taken.items():
                room = self.cluster.room_on(node, resource)
                unlimited = resource == PODS and PODS not in (node.allocatable.scalars or {})
                if amount > room + MIN_RESOURCE and not unlimited:
                    raise LawBroken(
                        f"S1: node {name} has {resource} {amount:g} of {room:g} taken by {self._pods_on(name)}"
                    )

    def _queues_within_limits(self, gangs: Container[str]) -> None:
        """Check that queues to which this cycle bound pods stay within ``spec.capability``, in the dimensions that it
        names."""
        queue_of = {key: group.queue for key, group in self.cluster.groups.items()}
        limited = {queue for key, queue in queue_of.items() if key in gangs and self._limits(queue)}
        groups = ((queue_of.get(pod.group_key, ""), pod) for pod in self._placed())
        taken = _totals((queue, pod) for queue, pod in groups if queue in limited)
        for queue in sorted(limited):
            for name, limit in self._limits(queue).items():
                amount = taken[queue].get(name, 0.0)
                if amount > limit + MIN_RESOURCE:
                    raise LawBroken(f"S1: queue {queue} has {name} {amount:g} of capability {limit:g}")

    def _limits(self, queue: str) -> dict[str, float]:
        found = self.cluster.queues.get(queue)
        return {} if found is None or found.capability is None else dict(amounts_of(found.capability))

    def _pods_on(self, node: str) -> str:
        return first_names([pod.key for pod in self._placed() if pod.node_name == node], _NAMES_SHOWN)

    def _sums_agree(self, usage: Usage, used: Totals) -> None:
        for node in self.cluster.nodes:
            kept = usage.of(node).used
            for resource in sorted(kept.keys() | used[node].keys()):
                a, b = kept.get(resource, 0.0), used[node].get(resource, 0.0)
                if abs(a - b) >= MIN_RESOURCE:
                    raise LawBroken(f"S9: node {node}: {resource} stored as {a:g}, recomputed as {b:g}")

    # -- S3 ------------------------------------------------------------------------------------------------------------

    def _answered(self, decisions: Sequence[Decision], answers: Sequence[Refusal | None]) -> None:
        """Check decisions. Called while a cycle runs, for all decisions that it submits."""
        for decision, refusal in zip(decisions, answers, strict=True):
            if isinstance(decision, Bind):
                self._bound(decision, refusal)

    def _bound(self, decision: Bind, refusal: Refusal | None) -> None:
        if decision.pod in self._asked and decision.pod not in self._refused:
            raise LawBroken(
                f"S3: {decision.pod} bound twice in one cycle: {self._asked[decision.pod].node}, {decision.node}"
            )
        self._asked[decision.pod] = decision
        (self._refused.discard if refusal is None else self._refused.add)(decision.pod)
        if refusal is None and decision.uid in self._node_of:
            raise LawBroken(
                f"S3: {decision.pod} bound to {decision.node}, was on {self._node_of[decision.uid]} already"
            )

    def _bound_once(self) -> None:
        for pod in self.cluster.pods.values():
            if not pod.node_name:
                continue
            before = self._node_of.setdefault(pod.uid, pod.node_name)
            if before != pod.node_name:
                raise LawBroken(f"S3: {pod.key} moved from {before} to {pod.node_name}")

    # -- S4 ------------------------------------------------------------------------------------------------------------

    def _none_lost(self) -> None:
        """Check that every job that is not done has all its pods."""
        if self.controller is None:
            return
        for run in self.controller.live.values():
            if run.ended is None and run.recreates:
                missing = [key for key in run.wanted if key not in self.cluster.pods]
                if missing:
                    names = first_names(missing, _NAMES_SHOWN)
                    raise LawBroken(f"S4: job {run.key} lost {len(missing)} of {run.size} pods: {names}")

    def _all_known(self) -> None:
        """Check that the scheduler knows every pod that it has received."""
        if self.known is None:
            return
        known = self.known()
        lost = [
            key
            for key, pod in self.cluster.pods.items()
            if key not in known
            and pod.scheduler_name in self.scheduler_names
            and not self.cluster.undelivered.owes(Pod, key)
        ]
        if lost:
            raise LawBroken(f"S4: the scheduler has lost {len(lost)} pods: {first_names(lost, _NAMES_SHOWN)}")

    # -- S2 ------------------------------------------------------------------------------------------------------------

    def _gang_is_whole(self, group: PodGroup, pods: list[Pod], asked: dict[str, Bind]) -> None:
        """Check that a gang is complete. Pods on nodes count, those that succeeded, those that this cycle asked to bind
        (a refusal undoes only that bind), and those without requests: the gang plugin counts them before they are
        placed."""
        counted = [
            pod
            for pod in pods
            if pod.key in asked
            or pod.phase == "Succeeded"
            or (pod.node_name and pod.phase != "Failed")
            or pod.spec.request.is_empty()
        ]
        if len(counted) < group.min_member:
            raise LawBroken(
                f"S2: gang {group.key} has {len(counted)} of minMember {group.min_member} with the binds of this cycle"
                f": {first_names([pod.key for pod in counted], _NAMES_SHOWN)}"
            )
        roles = Counter(pod.role for pod in counted)
        if group.min_member >= sum(group.min_task_member.values()):
            for role, minimum in group.min_task_member.items():
                if roles[role] < minimum:
                    raise LawBroken(
                        f"S2: gang {group.key} has {roles[role]} of {minimum} {role!r} with the binds of this cycle"
                    )
        placed = {pod.key: asked[pod.key].node if pod.key in asked else pod.node_name for pod in counted}
        for pod in counted:  # backfill places pods without requests on any node, as in Volcano
            if pod.spec.request.is_empty():
                placed[pod.key] = ""
        self._within(f"gang {group.key}", group.topology, placed.values())
        self._sub_gangs_are_whole(group, counted, placed)

    def _sub_gangs_are_whole(self, group: PodGroup, counted: list[Pod], placed: dict[str, str]) -> None:
        subs: dict[SubJobKey, list[Pod]] = defaultdict(list)
        for pod in counted:
            key = sub_job_of(pod.labels, group, pod.annotations)
            if key.policy is not None:
                subs[key].append(pod)
        ready = Counter(
            key.policy.name
            for key, pods in subs.items()
            if key.policy and len(pods) >= (key.policy.sub_group_size or 1)
        )
        for policy in group.sub_groups:
            if ready[policy.name] < (policy.min_sub_groups or 0):
                found = f"{ready[policy.name]} of {policy.min_sub_groups} sub-groups {policy.name!r}"
                raise LawBroken(f"S2: gang {group.key} has {found} with the binds of this cycle")
        for key, pods in subs.items():
            if key.policy is not None:
                self._within(f"sub-gang {key.id}", key.policy.topology, (placed[pod.key] for pod in pods))

    def _within(self, who: str, topology: NetworkTopology | None, nodes: Iterable[str]) -> None:
        """Check a hard topology: all nodes in one HyperNode of the allowed tier or a lower one.

        A tier above all existing ones allows the whole cluster, because it is that of the virtual HyperNode at the top.
        """
        if not self.topology or topology is None or not topology.is_hard or topology.highest_tier is None:
            return
        if topology.highest_tier > max((h.tier for h in self.cluster.hypernodes.values()), default=0):
            return
        wanted = {node for node in nodes if node}
        domains = [name for name, h in self.cluster.hypernodes.items() if h.tier <= topology.highest_tier]
        if wanted and not any(wanted <= self._leaves(name, frozenset()) for name in domains):
            spans = f"spans {first_names(sorted(wanted), _NAMES_SHOWN)}, within no HyperNode"
            raise LawBroken(f"S2: {who} {spans} of tier {topology.highest_tier} or less")

    def _leaves(self, name: str, above: frozenset[str]) -> set[str]:
        """Return the nodes of a HyperNode, none if it is its own ancestor."""
        hypernode = self.cluster.hypernodes.get(name)
        if hypernode is None or name in above:
            return set()
        found: set[str] = set()
        for member in hypernode.members:
            if member.type == "HyperNode":
                found |= self._leaves(member.exact or "", above | {name})
            elif member.exact is not None:
                found.add(member.exact)
            elif member.regex is not None:
                found |= {node for node in self.cluster.nodes if re.search(member.regex, node)}
            elif member.labels is not None:
                found |= {n.name for n in self.cluster.nodes.values() if matches(member.labels, n.labels)}
        return found


def _totals(placed: Iterable[tuple[str, Pod]]) -> Totals:
    """Return requests of pods, summed up by the name that each comes with."""
    found: Totals = defaultdict(dict)
    for name, pod in placed:
        total = found[name]
        for resource, amount in amounts_of(pod.spec.request):
            total[resource] = total.get(resource, 0.0) + amount
    return found
