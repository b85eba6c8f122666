"""Host ports: is one that the pod wants taken on the node? Source: kube-scheduler NodePorts."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.incremental import FilterInTurn
from pumice.model.pod import HostPort
from pumice.placing.filters.pods import PodIndex, PodSet, classes_where

TAKEN = Unfit("node(s) didn't have free ports for the requested pod ports")
EVERY_ADDRESS = "0.0.0.0"


class PortFilter:
    """Asked only for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._holders: dict[int, PodSet] = {}

    def concerns(self, cls: int) -> bool:
        return bool(self._index.tables.classes.specs[cls].host_ports)

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        """Nodes with a pod whose ports clash are out. Shape (rows,)."""
        taken = self._holders_of(task.cls.row).per_node()[nodes.rows] > 0
        return FilterResult(taken.astype(np.int32), ((), (TAKEN,)))

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn:
        """The same for tasks of one class that are placed one after the other."""
        holders = self._holders_of(tasks.classes[0])
        return _PortsInTurn(holders.per_node()[nodes.rows] == 0, holders.joined_by(tasks))

    def _holders_of(self, cls: int) -> PodSet:
        """Tasks whose ports clash with those of the class."""
        found = self._holders.get(cls)
        if found is None:
            tables = self._index.tables
            specs = tables.classes.specs
            others = classes_where(self._index.ssn, "host ports", lambda spec: bool(spec.host_ports))
            own = specs[cls].host_ports
            clashing = tuple(c for c in others if any(clash(a, b) for a in own for b in specs[c].host_ports))
            found = self._holders[cls] = self._index.of_classes(clashing)
        return found


class _PortsInTurn(FilterInTurn):
    """``free`` (rows,): nodes without a pod whose ports clash; ``takes``: whether the task of a turn becomes one."""

    def __init__(self, free: Bool, takes: list[bool]) -> None:
        self.count, self._free, self._takes = len(takes), free, takes

    def open_to(self, turn: int) -> Bool:
        return self._free

    def placed(self, turn: int, place: int) -> bool:
        if self._takes[turn]:
            self._free[place] = False
        return self._takes[turn]


def clash(one: HostPort, other: HostPort) -> bool:
    """Whether two pods cannot have these ports on one node."""
    if (one.port, one.protocol or "TCP") != (other.port, other.protocol or "TCP"):
        return False
    addresses = {one.ip or EVERY_ADDRESS, other.ip or EVERY_ADDRESS}
    return len(addresses) == 1 or EVERY_ADDRESS in addresses
