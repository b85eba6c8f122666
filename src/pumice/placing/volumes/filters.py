"""Filter nodes by volumes. Source: kube-scheduler VolumeBinding, VolumeZone, NodeVolumeLimits, VolumeRestrictions
(1.36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from pumice.columns.dtypes import I32, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import Code, FilterResult, Unfit
from pumice.framework.plugin.point import PODS, ROWS
from pumice.model.blockers.changes import AttachMore, Change, OfferVolume
from pumice.model.decisions import VOLUMES
from pumice.placing.derived import Derived, derived
from pumice.placing.volumes.ledger import COLUMNS, VolumeLedger, volume_ledger, volume_tasks

BINDING, ZONE, LIMITS = "VolumeBinding", "VolumeZone", "NodeVolumeLimits"
#: What the answers rest on.
VOLUME_READS = (ROWS, PODS, *COLUMNS)
#: Points at which volumes are asked about.
VOLUME_POINTS = (
    *(points.pre_predicate, points.predicate),
    *(points.on_allocate, points.on_deallocate, points.bind_context),
)

_USED = Unfit("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode")
_FULL = Unfit("node(s) exceed max volume count")
_OTHER_ZONE = Unfit("node(s) had no available volume zone", Code.UNRESOLVABLE)
_GONE = Unfit("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE)
_ELSEWHERE = Unfit("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE)
_NOTHING = Unfit("node(s) didn't find available persistent volumes to bind")
_NO_ROOM = Unfit("node(s) did not have enough free storage")
_WHY = ((), (_USED,), (_FULL,), (_OTHER_ZONE,), (_GONE,), (_ELSEWHERE,), (_NOTHING,), (_NO_ROOM,))
_CODE = {unfit: code for code, reasons in enumerate(_WHY) for unfit in reasons}

_ZONES = (
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
)
_ZONE_LABELS = frozenset(label for each in _ZONES for label in each)


@lru_cache(maxsize=1024)
def _why_with(offers: tuple[Change, ...], attached: tuple[Change, ...]) -> tuple[tuple[Unfit, ...], ...]:
    """Return ``_WHY`` with the changes after which a node has volumes for a task, and can attach them."""
    changes = {_FULL: attached, _NOTHING: offers, _NO_ROOM: offers}
    return tuple(tuple(replace(unfit, changes=changes.get(unfit, ())) for unfit in reasons) for reasons in _WHY)


class VolumeFilters:
    """Filters nodes by volumes. ``on``: names of the filters that are used; the ReadWriteOncePod rule always is."""

    def __init__(self, ssn: Session, ledger: VolumeLedger, on: tuple[str, ...]) -> None:
        self._ssn, self._ledger, self._on = ssn, ledger, on
        self._known: dict[Hashable, tuple[Hashable, I32]] = {}
        self._limits: dict[str, dict[int, int]] = {}
        row_of = ssn.tables.nodes.facts.row_of
        for each in ssn.tables.csi_nodes.objs:
            for driver, most in each.limits if each.name in row_of else ():
                self._limits.setdefault(driver, {})[row_of[each.name]] = most

    def refused(self, task: Task) -> Unfit | None:
        """Return why no node needs to be examined, or None."""
        if task.row in self._ledger.missing or BINDING in self._on:
            problem = self._ledger.problem(task.row)
            if problem:
                return Unfit(f"plugin {BINDING} pre-predicates failed {problem}", Code.UNRESOLVABLE)
        return None

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Return what volumes of the task reject, or None for a task without claims. Shape (rows,)."""
        row = task.row
        if not self._ledger.of_task.get(row):
            return None
        # Before all others, as in VolumeRestrictions: the claim is in use, so no node will do.
        if self._ledger.others_use_alone(row):
            return FilterResult.of(np.zeros(len(nodes), dtype=bool), _USED)
        return FilterResult(self._codes(row)[nodes.rows], self._why(row))

    def _why(self, row: int) -> tuple[tuple[Unfit, ...], ...]:
        """Return ``_WHY`` with what would help the task."""
        ledger = self._ledger
        claims = [ledger.claims[number] for number in ledger.of_task[row]]
        offers = tuple(OfferVolume(each.class_name, each.size) for each in claims if not each.bound)
        drivers = Counter(driver for driver, _ in map(ledger.driver_of, ledger.of_task[row]) if driver in self._limits)
        return _why_with(offers, tuple(AttachMore(driver, count) for driver, count in drivers.items()))

    def _codes(self, row: int) -> I32:
        """Return the first filter that rejects each node, cached for tasks with the same claims. Shape (N,)."""
        ledger = self._ledger
        question = ledger.of_task[row]
        # Only the limits depend on where pods are. Without them, answers survive placements.
        rests_on = (ledger.given.version, *(self._where_pods_are() if self._limits and LIMITS in self._on else ()))
        known = self._known.get(question)
        if known is None or known[0] != rests_on:
            known = self._known[question] = rests_on, self._find(row)
        return known[1]

    def _where_pods_are(self) -> tuple[int, int]:
        """Return the versions of where pods are."""
        tasks = self._ssn.tables.tasks
        return tasks["node"].version, tasks["status"].version

    def _find(self, row: int) -> I32:
        """Return the first filter that rejects each node. Shape (N,)."""
        codes = np.zeros(len(self._ssn.tables.nodes.facts), dtype=np.int32)
        filters: Mapping[str, Callable[[int, I32], None]] = {
            BINDING: self._binding,
            ZONE: self._zone,
            LIMITS: self._volume_limits,
        }
        for name in (BINDING, ZONE, LIMITS):  # the last one that writes a node counts: the first that is asked
            if name in self._on:
                filters[name](row, codes)
        return codes

    # -- filters ------------------------------------------------------------------------------------------------------

    def _binding(self, row: int, codes: I32) -> None:
        """Write the code of nodes where claims can be neither used nor bound."""
        ledger = self._ledger
        for number in ledger.of_task[row]:
            claim = ledger.claims[number]
            if claim.bound:
                volume = ledger.volume_of(number)
                # The claim names a volume that has been deleted, so no node can mount it.
                if volume is None:
                    codes[:] = _CODE[_GONE]
                else:
                    codes[~ledger.selected(volume.nodes)] = _CODE[_ELSEWHERE]
            # A claim that was promised a volume for a node is bound to that node for the rest of the session.
            elif (promised := int(ledger.node.array[number])) >= 0:
                codes[np.arange(len(codes)) != promised] = _CODE[_ELSEWHERE]
            else:
                self._unbound(number, codes)

    def _unbound(self, number: int, codes: I32) -> None:
        """Write the code of nodes where no volume exists for a claim and none can be provisioned."""
        # Each claim is examined alone. If two claims of a pod want the same volume, the placement is refused.
        ledger = self._ledger
        claim = ledger.claims[number]
        there = np.zeros(len(codes), dtype=bool)
        for volume in ledger.free_volumes(claim):
            # Any free volume that the node can use is enough.
            there |= ledger.selected(ledger.volumes[volume].nodes)
        made, room = ledger.makable(number)
        # A volume is being provisioned for that node already, as the claim's annotation says.
        if claim.node:
            here = np.array([name == claim.node for name in self._ssn.tables.nodes.facts.names], dtype=bool)
            there, made, room = there & here, made & here, room & here
        codes[~there & made & ~room] = _CODE[_NO_ROOM]
        codes[~there & ~made] = _CODE[_NOTHING]

    def _zone(self, row: int, codes: I32) -> None:
        """Write the code of nodes outside the zones of volumes."""
        ledger, facts = self._ledger, derived(self._ssn)
        for number in ledger.of_task[row]:
            volume = ledger.volume_of(number)
            for label, value in volume.labels.items() if volume is not None else ():
                if label in _ZONE_LABELS:
                    # Kubernetes joins several zones of a volume by two underscores.
                    allowed = frozenset(value.split("__"))
                    codes[~self._in_zone(facts, label, allowed)] = _CODE[_OTHER_ZONE]

    def _in_zone(self, facts: Derived, label: str, allowed: frozenset[str]) -> Bool:
        """Return the nodes in one of the zones, by this label or by the one with the same meaning. Shape (N,)."""

        def build() -> Bool:
            names = next(each for each in _ZONES if label in each)
            # Volumes and nodes may be from before and after the labels were renamed, in any combination.
            own = (next((n.labels[k] for k in (label, *names) if k in n.labels), None) for n in facts.facts.objs)
            return np.array([value in allowed for value in own], dtype=bool)

        return facts.get(("zone of a volume", label, allowed), build)

    def _volume_limits(self, row: int, codes: I32) -> None:
        """Write the code of nodes with too many volumes."""
        ledger = self._ledger
        asked: dict[str, set[tuple[str, str]]] = {}
        for number in ledger.of_task[row]:
            what = ledger.driver_of(number)
            # Most drivers have no limit, and then nothing needs to be counted.
            if what[0] in self._limits:
                asked.setdefault(what[0], set()).add(what)
        if not asked:
            return
        # Counted once for all drivers, by going through the tasks with claims.
        nodes, there = ledger.attached()
        for driver, wanted in asked.items():
            used: dict[int, int] = {}
            new = dict.fromkeys(self._limits[driver], len(wanted))
            for node, what in zip(nodes.tolist(), there, strict=True):
                # A volume that is attached already does not count again.
                if what[0] == driver and node in new:
                    used[node] = used.get(node, 0) + 1
                    new[node] -= what in wanted
            for node, most in self._limits[driver].items():
                if new[node] and used.get(node, 0) + new[node] > most:
                    codes[node] = _CODE[_FULL]


def register_volumes(ssn: Session, on: tuple[str, ...] = (BINDING, ZONE, LIMITS)) -> None:
    """Register hooks for the plugin that is being opened."""
    # If no pod names a claim, or no filter is on, no hook is registered and nothing costs time.
    if not on or not volume_tasks(ssn):
        return
    ledger = volume_ledger(ssn)
    filters = VolumeFilters(ssn, ledger, on)

    def granted(task: Task, node: Node) -> Mapping[str, object] | None:
        """Return what is passed on with the task's binding."""
        found = ledger.grants(task.row, node.row)
        return {VOLUMES: found} if found else None

    ssn.add(points.pre_predicate, filters.refused, VOLUME_READS)
    ssn.add(points.predicate, filters.filter_result, VOLUME_READS)
    ssn.add(points.on_allocate, ledger.placed)
    ssn.add(points.on_deallocate, ledger.left)
    ssn.add(points.bind_context, granted)
