"""Filter nodes on which a host port of the pod is in use. Source: kube-scheduler NodePorts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

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
    """Filters nodes for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._holders: dict[int, PodSet] = {}
        self._by_port: Ports | None = None

    def concerns(self, cls: int) -> bool:
        return bool(self._index.tables.classes.specs[cls].host_ports)

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        """Reject nodes with a pod whose ports clash. Shape (rows,)."""
        taken = self._holders_of(task.cls.row).per_node()[nodes.rows] > 0
        return FilterResult(taken.astype(np.int32), ((), (TAKEN,)))

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn:
        """Return an incremental filter for tasks of one class that are placed one after the other."""
        holders = self._holders_of(tasks.classes[0])
        return _PortsInTurn(holders.per_node()[nodes.rows] == 0, holders.joined_by(tasks))

    def _holders_of(self, cls: int) -> PodSet:
        """Return the tasks whose ports clash with those of the class."""
        found = self._holders.get(cls)
        if found is None:
            # All ports of a class at once, so that a class with 256 ports has one set of pods.
            mask = reduce(or_, map(self._ports().clashing, self._index.tables.classes.specs[cls].host_ports), 0)
            found = self._holders[cls] = self._index.of_classes(_bits(mask))
        return found

    def _ports(self) -> Ports:
        """Return the ports by class, made once."""
        if self._by_port is None:
            specs = self._index.tables.classes.specs
            holding = classes_where(self._index.ssn, "host ports", lambda spec: bool(spec.host_ports))
            self._by_port = Ports((cls, specs[cls].host_ports) for cls in holding)
        return self._by_port


class Ports:
    """Which classes hold a port, as bits of a number."""

    def __init__(self, held: Iterable[tuple[int, Iterable[HostPort]]]) -> None:
        # Bits, because a tenant may have 2,000 classes of 256 ports, and sets of that size would be slow to unite.
        self._at: dict[tuple[int, str, str], int] = {}
        self._at_any: dict[tuple[int, str], int] = {}  # at whatever address
        for cls, ports in held:
            for each in ports:
                port, protocol, ip = _port(each)
                self._at[port, protocol, ip] = self._at.get((port, protocol, ip), 0) | 1 << cls
                self._at_any[port, protocol] = self._at_any.get((port, protocol), 0) | 1 << cls

    def clashing(self, wanted: HostPort) -> int:
        """Return the classes that hold a port that clashes with this one."""
        port, protocol, ip = _port(wanted)
        # A port on all addresses clashes with the same port on any address.
        if ip == EVERY_ADDRESS:
            return self._at_any.get((port, protocol), 0)
        return self._at.get((port, protocol, ip), 0) | self._at.get((port, protocol, EVERY_ADDRESS), 0)


def _bits(mask: int) -> tuple[int, ...]:
    """Return the positions of the bits that are set, ascending."""
    octets = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return tuple(np.unpackbits(octets, bitorder="little").nonzero()[0].tolist())


class _PortsInTurn(FilterInTurn):
    """``free`` (rows,): nodes without a pod whose ports clash. ``takes``: whether the task of a step becomes such a
    pod."""

    def __init__(self, free: Bool, takes: list[int]) -> None:
        self.count, self._free, self._takes = len(takes), free, takes

    def open_to(self, step: int) -> Bool:
        return self._free

    def placed(self, step: int, place: int) -> bool:
        # Tasks of the class itself clash with each other, unless they are counted already.
        if self._takes[step]:
            self._free[place] = False
        return bool(self._takes[step])


def _port(port: HostPort) -> tuple[int, str, str]:
    """Return a port with the API's defaults, so that equal ports compare equal."""
    return port.port, port.protocol or "TCP", port.ip or EVERY_ADDRESS
