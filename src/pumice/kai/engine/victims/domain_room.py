"""Reject scenarios in which a gang with required domains has too few GPUs in each of them, without simulating them.

Source: KAI accumulated_scenario_filters, TopologyAwareIdleGpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64, I32
from pumice.framework.cycle.session import Session
from pumice.kai.engine.chunks import active_tasks
from pumice.kai.engine.members import members
from pumice.kai.engine.parts import Part
from pumice.kai.engine.victims.gpus import free_gpus, gpus_of_each
from pumice.kai.label_trees import node_label
from pumice.placing.derived import derived
from pumice.placing.gang_tree import Member


class _Level(Struct, frozen=True):
    """``domains`` (N,): the domain of each node, -1 for none. ``needs``: milli-GPUs of each set that must be in one
    domain, the largest first. ``free`` (domains,): idle and releasing milli-GPUs."""

    domains: I32
    needs: tuple[float, ...]
    free: F64


def has_required_domains(ssn: Session, job: int) -> bool:
    """Return True if a set of the job's gang must stay in one domain."""
    return next(_required(members(ssn, job)), None) is not None


class DomainRoom:
    """The test for one part of a job. A job without required domains passes it."""

    def __init__(self, ssn: Session, part: Part) -> None:
        self._ssn = ssn
        needs: dict[tuple[str, str], list[float]] = {}
        if has_required_domains(ssn, part.job):
            # Quirk of KAI, kept on purpose: what already runs counts as a need, although the GPUs that it holds do not
            # count as room. So scenarios are passed over that would succeed, until more victims were added.
            held = {sub: [*rows] for sub, rows in active_tasks(ssn, part.job).items()}
            for sub, rows in part.tasks.items():
                held.setdefault(sub, []).extend(rows)
            for (topology, level), member in _required(members(ssn, part.job)):
                # By the label, since one set may name a level by its alias and another one by its label.
                key = topology, node_label(ssn.tables, topology, level)
                needs.setdefault(key, []).append(float(gpus_of_each(ssn, _rows(member, held)).sum()))
        self._levels = [self._level(label, needs[topology, label]) for topology, label in needs]

    def _level(self, label: str, needs: list[float]) -> _Level:
        column = derived(self._ssn).label(label)
        there = column.codes >= 0
        free: F64 = np.zeros(len(column.values))
        np.add.at(free, column.codes[there], free_gpus(self._ssn)[there])
        return _Level(column.codes, tuple(sorted(needs, reverse=True)), free)

    @property
    def is_limited(self) -> bool:
        """True if any scenario may fail the test."""
        return bool(self._levels)

    def allows(self, victims: Iterable[int]) -> bool:
        """Return True if, with these tasks gone, each level has domains with enough GPUs for the sets one after the
        other, the largest first."""
        rows = list(victims) if self._levels else []
        nodes, each = self._ssn.tables.tasks.node[rows], gpus_of_each(self._ssn, rows)
        return all(_fit(level, level.domains[nodes], each) for level in self._levels)


def _fit(level: _Level, domains: I32, amounts: F64) -> bool:
    there = domains >= 0
    free = level.free.copy()
    np.add.at(free, domains[there], amounts[there])
    for need in level.needs:
        if need <= 0:
            continue
        # Each set goes where most is free, as in KAI. Another distribution might fit where this one fails; the scenario
        # is then tried with more victims.
        best = int(free.argmax()) if len(free) else -1
        if best < 0 or free[best] < need:
            return False
        free[best] -= need
    return True


def _required(member: Member) -> Iterator[tuple[tuple[str, str], Member]]:
    """Yield each set with a required level, with the Topology and the level. Pod sets are not looked at, as in KAI."""
    if member.is_set:
        if member.topology is not None and member.topology.required:
            yield (member.topology.topology, member.topology.required), member
        for each in member.inside:
            yield from _required(each)


def _rows(member: Member, held: dict[int, list[int]]) -> list[int]:
    if member.is_set:
        return [row for each in member.inside for row in _rows(each, held)]
    return held.get(member.sub, [])
