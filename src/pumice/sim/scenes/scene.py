"""The start of a simulation, independent of its source."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.events import Object
from pumice.model.workloads.job_makers import JobMaker
from pumice.runtime.problems.problem import Problem
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.workloads.work import Work


class Scene(Struct, frozen=True):
    """``objects`` exist at the start; ``works`` arrive at their times.

    ``notes``: assumptions. ``problems``: what could not be used. ``makers``: objects from which Jobs are created.
    """

    objects: tuple[Object, ...]
    works: tuple[Work, ...]
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    makers: tuple[JobMaker, ...] = ()

    def all_objects(self, now: float) -> list[Object]:
        """Return everything at once, as if all works arrived at ``now``: what exists, and what jobs are made of."""
        found = list(self.objects)
        for work in self.works:
            group, pods = work.expand(now)
            found += (group, *pods)
        return found

    def enter(self, cluster: SimCluster, controller: Controller) -> None:
        """Put everything on a cluster."""
        for obj in self.objects:
            cluster.put(obj)
        controller.submit_all(self.works)
