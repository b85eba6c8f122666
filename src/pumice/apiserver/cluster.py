"""A cluster without machines: the store, the API over it, and the parts that act on it."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from random import Random

from msgspec import Struct

from pumice.apiserver.actors.claims import Claims
from pumice.apiserver.actors.collector import Collector
from pumice.apiserver.actors.cron_jobs import CronJobs
from pumice.apiserver.actors.group_protection import GroupProtection
from pumice.apiserver.actors.jobs import Jobs
from pumice.apiserver.actors.kubelets import Kubelets
from pumice.apiserver.actors.node_life import NodeLife
from pumice.apiserver.api.requests import body_of
from pumice.apiserver.bounds import check_object
from pumice.apiserver.kinds.metadata import Stamps, metadata_of
from pumice.apiserver.kinds.registry import Registry
from pumice.apiserver.objects import Objects, Options, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Store
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.serving.supervision import Health, SupervisedTask

_log = logging.getLogger("pumice.apiserver")


class Cluster(Struct, frozen=True):
    """``store`` has everything, and all writes go through ``objects``."""

    store: Store
    registry: Registry
    objects: Objects
    collector: Collector
    kubelets: Kubelets
    node_life: NodeLife
    jobs: Jobs
    cron_jobs: CronJobs
    group_protection: GroupProtection
    claims: Claims
    _parts: tuple[SupervisedTask, ...]

    def checks(self) -> dict[str, Callable[[], Health]]:
        """Return the health of the parts that act on objects."""
        skipped = {"nodes": self.kubelets.skipped, "garbage-collection": self.collector.skipped}
        skipped |= {"node-life": self.node_life.skipped, "jobs": self.jobs.skipped, "cron-jobs": self.cron_jobs.skipped}
        skipped |= {"group-protection": self.group_protection.skipped, "claims": self.claims.skipped}

        def check(part: SupervisedTask) -> Health:
            health = part.health()
            return Health(health.well, "; ".join(filter(None, (health.note, skipped[part.name].note))))

        return {part.name: partial(check, part) for part in self._parts}

    def place(self, obj: Obj) -> None:
        """Create an object of a manifest, with its status. An existing one stays.

        It is treated as sent by a client: what JSON cannot express is refused. Raises: Refusal.
        """
        obj = body_of(check_object(obj))
        resource = self.registry.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        if resource is None:
            raise Refusal(404, "NotFound", f"{obj.get('apiVersion')} {obj.get('kind')} is not served")
        metadata = {k: v for k, v in metadata_of(obj).items() if k not in ("resourceVersion", "uid")}
        namespace = metadata.get("namespace") or ("default" if resource.namespaced else "")
        target = Target(resource, namespace)
        try:
            self.objects.create(target, {**obj, "metadata": metadata}, Options())
        except Refusal as refusal:
            if refusal.reason != "AlreadyExists":
                raise

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run nodes, jobs, CronJobs, claims and garbage collection."""
        tasks = [asyncio.create_task(part.run()) for part in self._parts]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def make_cluster(
    store: Store,
    definitions: Iterable[Obj],
    *,
    now: Callable[[], float] = time.time,
    uid: Callable[[], str] = lambda: str(uuid.uuid4()),
    seed: int | None = None,
    speed: float = 1.0,
) -> Cluster:
    """Return a cluster over a store, with the namespaces that always exist and these CustomResourceDefinitions."""
    registry = Registry(store)
    objects = Objects(store, registry, Stamps(now, uid, Random(seed)))
    objects.at_start()
    collector, kubelets, life = Collector(objects), Kubelets(objects, now, speed), NodeLife(objects, now)
    jobs, cron_jobs, protection = Jobs(objects, now), CronJobs(objects, now), GroupProtection(objects)
    works = {"nodes": kubelets.run, "garbage-collection": collector.run, "node-life": life.run, "jobs": jobs.run}
    claims = Claims(objects, now)
    works |= {"cron-jobs": cron_jobs.run, "group-protection": protection.run, "claims": claims.run}
    parts = tuple(SupervisedTask(_log, name, work) for name, work in works.items())
    cluster = Cluster(store, registry, objects, collector, kubelets, life, jobs, cron_jobs, protection, claims, parts)
    for definition in definitions:
        cluster.place(definition)
    return cluster
