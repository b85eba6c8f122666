"""Where a gang may be placed for which others are evicted: hypernodes, or domains of a node label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.framework.cycle.session import Session
from pumice.volcano.gangs.sub_job import Domain
from pumice.volcano.topology.domains import EVICT, gradients_for_job, gradients_for_sub_job
from pumice.volcano.topology.label_domains import domains_to_vacate
from pumice.volcano.topology.rules import common_label, has_hard


class GangPlace(NamedTuple):
    """Nodes on which a gang or a sub-job may be placed. ``hypernode``: -1 for a domain of a node label, in which
    plugins that ask about hypernodes have no say."""

    name: str
    nodes: NodeRows
    hypernode: int


class GangPlaces:
    """The places of one search. ``promised_kept``: those that contain all nodes to which tasks are nominated come first
    (decision 0016)."""

    def __init__(self, ssn: Session, *, promised_kept: bool) -> None:
        self._ssn, self._promised_kept = ssn, promised_kept
        self._hypernodes: dict[int, GangPlace] = {}

    def of_job(self, job: int, waiting: list[int]) -> list[GangPlace]:
        """Return the places to try for a job with these waiting tasks, in order."""
        tables = self._ssn.tables
        if label := common_label(tables, job):
            found = [
                GangPlace(name, NodeRows(tables, within.nonzero()[0]), -1)
                for name, within in domains_to_vacate(self._ssn, label, tables.jobs.tasks[job], waiting)
            ]
        else:
            found = self._of_tree(job)
        promised = tables.tasks.nominated[waiting]
        promised = promised[promised >= 0]
        if self._promised_kept and len(promised):
            # Stable, so that the plugins' order holds among the places with and among those without the nominated
            # nodes.
            found.sort(key=lambda place: not np.isin(promised, place.nodes.rows).all())
        return found

    def of_sub_job(self, job: int, sub: int, place: GangPlace) -> list[GangPlace]:
        """Return the places inside one of the job in which a sub-job is tried, in order."""
        if not has_hard(self._ssn.tables, job):
            return [place]
        gradients = gradients_for_sub_job(self._ssn, sub, place.hypernode, EVICT)
        return [self._at(each) for gradient in gradients for each in gradient]

    def _of_tree(self, job: int) -> list[GangPlace]:
        """Return the hypernodes to try for a job."""
        tables = self._ssn.tables
        flat = [hypernode for gradient in gradients_for_job(self._ssn, job, EVICT) for hypernode in gradient]
        # Without a hard topology the tree is no restriction, and the whole cluster is the only domain.
        if not flat and not has_hard(tables, job):
            return [self._at(tables.tree.top)]
        return [self._at(each) for each in dict.fromkeys(flat)]

    def _at(self, hypernode: int) -> GangPlace:
        if hypernode not in self._hypernodes:
            name, nodes = self._ssn.tables.tree.names[hypernode], Domain(self._ssn, hypernode).nodes
            self._hypernodes[hypernode] = GangPlace(name, nodes, hypernode)
        return self._hypernodes[hypernode]
