"""Where a gang may be placed for which others are evicted: hypernodes, or domains of a node label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import NodeRows
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus
from pumice.placing.gang_tree import Member
from pumice.volcano.gangs.sub_job import Domain
from pumice.volcano.topology.domains import EVICT, gradients_for_job, gradients_for_sub_job
from pumice.volcano.topology.label_domains import domains_to_vacate
from pumice.volcano.topology.rules import common_label, domains_of_groups, has_hard


class GangPlace(NamedTuple):
    """Nodes on which a gang or a sub-job may be placed. ``hypernode``: -1 for a domain of a node label, in which
    plugins that ask about hypernodes have no say."""

    name: str
    nodes: NodeRows
    hypernode: int


class GangPlaces:
    """The places of one job and of its sub-jobs."""

    def __init__(self, ssn: Session, job: int) -> None:
        self._ssn, self.job = ssn, job
        self._hypernodes: dict[int, GangPlace] = ssn.shared(GangPlace, dict)
        self._of_each = domains_of_groups(ssn.tables, job)
        self._before_trials: dict[tuple[int, str], list[GangPlace]] = {}  # by sub-job and place

    @property
    def has_inner_domains(self) -> bool:
        """True if groups of the job have domains of their own."""
        return bool(self._of_each)

    def of_job(self, waiting: list[int], *, promised_kept: bool) -> list[GangPlace]:
        """Return the places to try for the job, of which these tasks wait, in order. ``promised_kept``: places that
        contain all nodes to which tasks are nominated come first (decision 0016)."""
        tables, job = self._ssn.tables, self.job
        if label := common_label(tables, job):
            found = self._in_domains(label, tables.jobs.tasks[job], waiting)
        elif self._of_each:
            found = self._of_groups(waiting)
        else:
            found = self._of_tree()
        promised = tables.tasks.nominated[waiting]
        promised = promised[promised >= 0]
        if promised_kept and len(promised):
            # Stable, so that the plugins' order holds among the places with and among those without the nominated
            # nodes.
            found.sort(key=lambda place: not np.isin(promised, place.nodes.rows).all())
        return found

    def of_sub_job(self, sub: int, place: GangPlace) -> list[GangPlace]:
        """Return the places inside one of the job in which a sub-job is tried, in order."""
        if sub in self._of_each:
            found = [place]
            # Inwards: each group's domain is in that of the group around it. Where a sub-job of a group is placed
            # already, the others go.
            for label, subs in self._of_each[sub]:
                tasks = np.concatenate([self._ssn.tables.subs.tasks[each] for each in subs])
                waiting = tasks[self._ssn.tables.tasks.status[tasks] == TaskStatus.PENDING].tolist()
                found = [narrow for each in found for narrow in self._in_domains(label, tasks, waiting, each)]
            return found
        if not has_hard(self._ssn.tables, self.job):
            return [place]
        gradients = gradients_for_sub_job(self._ssn, sub, place.hypernode, EVICT)
        return [self._at(each) for gradient in gradients for each in gradient]

    def inside(self, member: Member, place: GangPlace) -> list[GangPlace]:
        """Return the places inside one in which a group of the job's tree is tried, in order."""
        if member.topology is None:
            return [place]
        subs = self._ssn.tables.subs.tasks
        tasks = np.concatenate([subs[each] for each in member.subs]) if member.subs else np.zeros(0, dtype=np.int64)
        waiting = tasks[self._ssn.tables.tasks.status[tasks] == TaskStatus.PENDING].tolist()
        return self._in_domains(member.topology.required, tasks, waiting, place)

    def before_trials(self, sub: int, place: GangPlace) -> list[GangPlace]:
        """Return the places of a sub-job while nothing of the job is placed and nothing is evicted for it."""
        # Sums ask for each number of victims, and nothing that a plugin reads moves in between.
        found = self._before_trials.get((sub, place.name))
        if found is None:
            found = self._before_trials[sub, place.name] = self.of_sub_job(sub, place)
        return found

    def _of_groups(self, waiting: list[int]) -> list[GangPlace]:
        """Return the places for a tree of which groups have domains: one domain for all of them, where the fewest
        victims have to leave, and then all nodes on which the tree may be."""
        tables, job = self._ssn.tables, self.job
        kinds = {domains[0].label for domains in self._of_each.values()}
        gang = tables.jobs.groups[job].gang
        assert gang is not None
        if gang.topology is not None:
            around = self._in_domains(gang.topology.required, tables.jobs.tasks[job], waiting)
        else:
            around = [self._at(tables.tree.top)]
        if len(kinds) > 1:
            return around
        (label,) = kinds
        # Where each of them must be for its own pods that run is asked for each of them.
        return [*(narrow for each in around for narrow in self._in_domains(label, (), waiting, each)), *around]

    def _in_domains(
        self, label: str, members: Sequence[int] | AnyArray, waiting: list[int], around: GangPlace | None = None
    ) -> list[GangPlace]:
        """Return the domains of a label, ``around``: on these nodes alone."""
        tables, only = self._ssn.tables, None
        if around is not None:
            only = np.zeros(len(tables.nodes.facts), dtype=bool)
            only[around.nodes.rows] = True
        domains = domains_to_vacate(self._ssn, label, members, waiting, only)
        found = ((name, within.nonzero()[0]) for name, within in domains)
        return [GangPlace(name, NodeRows(tables, rows), -1) for name, rows in found if len(rows)]

    def _of_tree(self) -> list[GangPlace]:
        """Return the hypernodes to try for the job."""
        tables, job = self._ssn.tables, self.job
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
