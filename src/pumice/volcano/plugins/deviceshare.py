"""deviceshare: share cards among pods by memory, by number, or by memory and cores (vGPU, NPU).

Source: Volcano deviceshare plugin. Cards are chosen when a pod is placed, and sent with its binding as annotations,
which the device plugin of the node reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pumice.api import (
    F64,
    NOW,
    PODS,
    ROWS,
    AnyArray,
    Bool,
    FilterResult,
    Node,
    NodeRows,
    Refusal,
    Session,
    Task,
    TaskClass,
    TaskRun,
    TaskStatus,
    Unfit,
    plugin,
    points,
)
from pumice.model.decisions import DEVICES
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.volcano.devices.cards import BINPACK, SPREAD, Family
from pumice.volcano.devices.config import (
    CONFIG_MAP_NAME,
    CONFIG_MAP_NAMESPACE,
    DeviceConfigError,
    config_map_problems,
    read_device_config,
)
from pumice.volcano.devices.exclusive import Rules, read_rules
from pumice.volcano.devices.gpushare import SharedGpus
from pumice.volcano.devices.ledger import CardLedger, asking_tasks
from pumice.volcano.devices.locks import LOCKED_NODE, NodeLocks
from pumice.volcano.devices.npus import Npus
from pumice.volcano.devices.vgpu import Vgpus

#: Answers for pods that must not share cards with certain others also rest on which pod has which card.
_OTHERS = (ROWS, PODS, "deviceshare.state", "deviceshare.on", "deviceshare.cards")
_LOCKED = Refusal("another pod is on its way to the cards of the node")
_NOT_THERE = Refusal("the cards that it would share have no room any more")


@plugin("deviceshare", separator=".")
class DeviceShare:
    """Place pods on shared cards.

    ``deviceshare.GPUSharingEnable``: pods share a GPU by memory. ``GPUNumberEnable``: pods take whole GPUs.
    ``VGPUEnable``: vGPUs. ``AscendHAMiVNPUEnable``: NPUs. ``SchedulePolicy``: ``binpack`` or ``spread``, the order of
    cards. ``ScheduleWeight``: weight of the score among nodes. ``GPUExclusiveRules``: a list of labels; pods that
    match the same entry do not share a card. ``NodeLockEnable``: one pod at a time is bound to the cards of a node.
    ``DeviceConfig``: the contents of Volcano's ``device-config.yaml``. Volcano reads it from the ConfigMap
    ``KnownGeometriesCMName`` in ``KnownGeometriesCMNamespace``; here no ConfigMap is read, so if another one is named,
    its contents must be given here.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        deviceshare_GPUSharingEnable: bool = False,
        deviceshare_GPUNumberEnable: bool = False,
        deviceshare_VGPUEnable: bool = False,
        deviceshare_NodeLockEnable: bool = False,
        deviceshare_AscendMindClusterVNPUEnable: bool = False,
        deviceshare_AscendHAMiVNPUEnable: bool = False,
        deviceshare_SchedulePolicy: str = "",
        deviceshare_ScheduleWeight: int = 0,
        deviceshare_KnownGeometriesCMName: str = CONFIG_MAP_NAME,
        deviceshare_KnownGeometriesCMNamespace: str = CONFIG_MAP_NAMESPACE,
        deviceshare_GPUExclusiveRules: Any = None,
        deviceshare_DeviceConfig: Any = None,
    ) -> None:
        self.ssn, self._weight = ssn, deviceshare_ScheduleWeight
        # Volcano keeps these switches for the life of its process. Here each session reads them from the policy, so
        # that a changed policy takes effect.
        config = read_device_config(deviceshare_DeviceConfig)
        families: list[Family] = []
        if deviceshare_GPUSharingEnable or deviceshare_GPUNumberEnable:
            families.append(SharedGpus(by_number=deviceshare_GPUNumberEnable))
        if deviceshare_VGPUEnable:
            families.append(Vgpus(config))
        if deviceshare_AscendHAMiVNPUEnable:
            families += map(Npus, config.npus)
        rules = Rules(read_rules(deviceshare_GPUExclusiveRules))
        self._policy = deviceshare_SchedulePolicy
        rows = asking_tasks(ssn.tables, families)
        self._ledger: CardLedger | None = None
        self._locks: NodeLocks | None = None
        if len(rows):
            self._ledger = CardLedger(ssn, families, rows, self._policy, rules)
            self._locks = NodeLocks(ssn, families, rows, self._ledger) if deviceshare_NodeLockEnable else None
        # Filters with a loop over nodes are slow, so each hook is off unless some pod needs it.
        self.unused_hooks = (
            *(() if self._ledger else ("fits", "waits", "on_allocate", "on_deallocate", "bind_context")),
            *(() if self._locks else ("free",)),
            *(() if self._ledger and self._weight > 0 else ("node_order",)),
            *(() if self._ledger and self._ledger.some_keep_apart else ("apart",)),
        )

    @staticmethod
    def problems(
        *,
        deviceshare_GPUSharingEnable: bool,
        deviceshare_GPUNumberEnable: bool,
        deviceshare_VGPUEnable: bool,
        deviceshare_AscendMindClusterVNPUEnable: bool,
        deviceshare_AscendHAMiVNPUEnable: bool,
        deviceshare_SchedulePolicy: str,
        deviceshare_KnownGeometriesCMName: str,
        deviceshare_KnownGeometriesCMNamespace: str,
        deviceshare_GPUExclusiveRules: Any,
        deviceshare_DeviceConfig: Any,
        **_: object,
    ) -> Iterator[str]:
        """Yield arguments that are invalid, or cannot be used together."""
        each = {"GPUSharingEnable": deviceshare_GPUSharingEnable, "GPUNumberEnable": deviceshare_GPUNumberEnable}
        for name in (name for name, on in each.items() if on):
            # Volcano exits here: two ledgers would give away the cards of one node without knowing of each other.
            if all(each.values()) or deviceshare_VGPUEnable:
                other = "VGPUEnable" if deviceshare_VGPUEnable else next(key for key in each if key != name)
                yield f"argument deviceshare.{name}: found true beside deviceshare.{other}, wanted one of them"
        if deviceshare_SchedulePolicy not in ("", BINPACK, SPREAD):
            found = deviceshare_SchedulePolicy[:40]
            yield f"argument deviceshare.SchedulePolicy: found {found!r}, wanted {BINPACK} or {SPREAD}"
        if deviceshare_AscendMindClusterVNPUEnable:
            # Reported and not ignored, since a policy that has an effect in Volcano would lose it here.
            what = "found true, wanted false: NPUs of MindCluster are not shared out by this version yet"
            yield f"argument deviceshare.AscendMindClusterVNPUEnable: {what}"
        is_used = (deviceshare_VGPUEnable or deviceshare_AscendHAMiVNPUEnable) and deviceshare_DeviceConfig is None
        yield from config_map_problems(
            deviceshare_KnownGeometriesCMNamespace, deviceshare_KnownGeometriesCMName, is_used=is_used
        )
        for argument, read, given in (
            ("GPUExclusiveRules", read_rules, deviceshare_GPUExclusiveRules),
            ("DeviceConfig", read_device_config, deviceshare_DeviceConfig),
        ):
            try:
                read(given)
            except DeviceConfigError as error:
                yield f"argument deviceshare.{argument}: {error}"

    def figures(self) -> Mapping[str, AnyArray]:
        """Return what each card of each node has and what pods hold of it, for pages. Shapes (N, cards)."""
        return {} if self._ledger is None else self._ledger.figures()

    # -- filters ------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def fits(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes without cards for the pod, whatever other pods run there. Shape (rows,)."""
        assert self._ledger is not None
        return self._filter_result(self._ledger, cls.row, nodes, -1)

    @points.predicate(reads=(ROWS,))
    def free(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes whose cards another pod is being bound to. Shape (rows,)."""
        assert self._ledger is not None and self._locks is not None
        families = self._ledger.families_of(cls.row)
        if not families:
            return None
        # Of a batch, too, only the first pod may be bound to the cards of a node.
        further = np.zeros(len(nodes), dtype=bool) if nodes.further is None else nodes.further > 0
        held = self._locks.bars(nodes, families, further)
        return FilterResult(held.astype(np.int32), ((), (LOCKED_NODE,)))

    @points.predicate(reads=_OTHERS)
    def apart(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes without cards for a pod that must not share cards with certain others. Shape (rows,)."""
        assert self._ledger is not None
        return (
            self._filter_result(self._ledger, task.cls.row, nodes, task.row)
            if self._ledger.keeps_apart(task.row)
            else None
        )

    def _filter_result(self, ledger: CardLedger, cls: int, nodes: NodeRows, task: int) -> FilterResult | None:
        """Return the answer of a filter for a class, or for one task."""
        if not ledger.asks[cls]:
            return None
        why: dict[Unfit, int] = {}
        codes = np.zeros(len(nodes), dtype=np.int32)
        soon = nodes.read(ledger.soon)
        further = np.zeros(len(nodes)) if nodes.further is None else nodes.further
        for i, node in enumerate(nodes.rows.tolist()):
            found = ledger.fit(cls, node, soon[i], task, int(further[i]))
            if isinstance(found, Unfit):
                codes[i] = why.setdefault(found, len(why) + 1)
        return FilterResult(codes, ((), *((unfit,) for unfit in why)))

    @points.waits(reads=_OTHERS)
    def waits(self, task: Task, nodes: NodeRows) -> Bool | None:
        """Return the nodes on which the cards are still in use. Shape (rows,)."""
        ledger, cls = self._ledger, task.cls.row
        assert ledger is not None
        # If no pod with cards is leaving, no cards will become free, and there is nothing to wait for.
        if not ledger.asks[cls] or not ledger.some_leave:
            return None
        return np.array([isinstance(ledger.at_once(task.row, node), Unfit) for node in nodes.rows.tolist()], dtype=bool)

    # -- scores -------------------------------------------------------------------------------------------------------

    @points.node_order(reads=(ROWS,))
    def node_order(self, cls: TaskClass, nodes: NodeRows) -> F64 | None:
        """Return the score of the cards that the pod would get. Shape (rows,)."""
        ledger = self._ledger
        assert ledger is not None
        if not ledger.asks[cls.row] or not self._policy:
            return None
        soon = nodes.read(ledger.soon)
        further = np.zeros(len(nodes)) if nodes.further is None else nodes.further
        each = [ledger.fit(cls.row, node, soon[i], -1, int(further[i])) for i, node in enumerate(nodes.rows.tolist())]
        found: F64 = np.array([0.0 if isinstance(fit, Unfit) else fit.score for fit in each])
        # Rounds halves up, as math.Round of Go does for positive numbers.
        return np.floor(found + 0.5) * self._weight

    # -- moves --------------------------------------------------------------------------------------------------------

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> Refusal | None:
        """Assign cards to tasks, or refuse the placement."""
        assert self._ledger is not None
        for row, node in zip(run.rows, run.nodes, strict=True):
            if not self._ledger.placed(row, node):
                return _NOT_THERE
            if self._locks is not None and not self._lock(self._locks, row, node):
                return _LOCKED
        return None

    def _lock(self, locks: NodeLocks, row: int, node: int) -> bool:
        """Take the locks for a task. Return False if one is held."""
        assert self._ledger is not None
        tasks = self.ssn.tables.tasks
        # A pipelined task takes no lock, since it is not bound in this cycle.
        if tasks.status[row] == TaskStatus.PIPELINED or tasks.pods[row].node_name:
            return True
        families = self._ledger.families_of(int(tasks.cls[row]))
        return not families or locks.take(node, families)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        """Release the cards of tasks."""
        assert self._ledger is not None
        for row in run.rows:
            self._ledger.left(row)

    @points.bind_context(reads=(*_OTHERS, "deviceshare.got", NOW))
    def bind_context(self, task: Task, node: Node) -> Mapping[str, object] | None:
        """Return the annotations for the cards that a task got."""
        assert self._ledger is not None
        found = self._ledger.annotations(task.row, self.ssn.now)
        if not found:
            return None
        pod, families = task.pod, self._ledger.families_of(task.cls.row)
        locks = () if self._locks is None else self._locks.names(families)
        return {DEVICES: DeviceGrant(pod.namespace, pod.name, tuple(sorted(found.items())), locks)}
