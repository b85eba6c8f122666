"""The loop of every controller: follow kinds, handle each key that a change concerns, and retry what fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.controllers.key_queue import KeyQueue
from pumice.kube.controllers.writes import Writing
from pumice.kube.informers.reflector import Reflector
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.kube.writers.event_recorder import EventRecorder
from pumice.model.events import Event, Seen
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import Pod

Key = TypeVar("Key", bound=Hashable)

_WORKERS = 5  # as many as Volcano's podgroup controller has
_LOGGED_MAX = 10_000
_log = logging.getLogger("pumice.controllers")


class Part(NamedTuple):
    """A controller of a loop. ``needs``: kind without which none of its keys is handled, because what seems to be
    missing may exist. ``watches``: kinds that must be listed before it handles anything."""

    needs: Kind
    watches: tuple[Kind, ...]


class Reconciler(Generic[Key]):
    """A run, from an empty view.

    Name the kinds to follow (``follow``), then ``run``. Events of objects add keys. Each key is handled by one worker
    at a time, once its part has begun, and ``writing`` carries out the writes. A key that fails comes again at growing
    intervals, and the failure is logged once until it is over.
    """

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float],
        named: Callable[[Key], str],
        parts: Collection[Part],
        part_of: Callable[[Key], Part],
        retry_policy: RetryPolicy | None = None,
        troubles: WatchFailures | None = None,
    ) -> None:
        """``clock``: seconds since the epoch. ``named``: returns a key as text for the log. ``part_of``: returns which
        of the ``parts`` handles a key."""
        self.queue: KeyQueue[Key] = KeyQueue()
        self._client, self._named, self._part_of = client, named, part_of
        self._held: dict[Part, dict[Key, None]] = {part: {} for part in parts}  # of those that have not begun
        self._retry_policy, self._troubles = retry_policy or RetryPolicy(), troubles or WatchFailures()
        self._recorder = EventRecorder(client, "pumice", now=clock)
        self.writing = Writing(client, self._recorder.record)
        self._reflectors: dict[Kind, Reflector] = {}
        self._logged: dict[Key, None] = {}  # keys that fail, which the log has

    def follow(self, codec: Codec, put: Callable[[Obj], None], drop: Callable[[str], None]) -> None:
        """Follow the kind of a codec that reads dictionaries.

        ``put``: called with new and changed objects. ``drop``: called with the keys of deleted ones.
        """

        def sink(events: list[Event]) -> None:
            for event in events:
                if isinstance(event, Seen):
                    put(event.obj)  # type: ignore[arg-type]  # the codec reads dictionaries
                else:
                    drop(event.key)  # type: ignore[union-attr]  # a reflector undoes nothing

        self._reflectors[codec.kind] = Reflector(
            self._client, codec.kind, codec, sink, Pod, self._retry_policy, self._troubles
        )

    async def read(self, kind: Kind, key: str) -> Obj | None:
        """Return an object as the server has it, None if it does not exist or may not be read. Raises: KubeError."""
        try:
            found: Obj = await self._client.get(kind.path(key))
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return None
        return found

    async def listed(self, kind: Kind) -> list[Obj] | None:
        """Return all objects of a kind, None if it is not served or may not be read. Raises: KubeError."""
        try:
            found = await self._client.get(kind.list_path)
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return None
        return list(found["items"])

    async def kind_named(self, api_version: str, kind: str) -> Kind | None:
        """Return a namespaced kind by its name, None if the server does not have it. Source: discovery. Raises:
        KubeError."""
        group, _, version = api_version.rpartition("/")
        try:
            found = await self._client.get(Kind(group, version, "", kind).version_path)
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return None
        plurals = (
            each["name"]
            for each in found["resources"]
            if each["kind"] == kind and each["namespaced"] and "/" not in each["name"]
        )
        plural = next(plurals, None)
        return None if plural is None else Kind(group, version, plural, kind)

    def add(self, key: Key) -> None:
        """Add a key to be handled now, or when its part begins."""
        held = self._held.get(self._part_of(key))
        if held is None:
            self.queue.add(key)
        else:
            held[key] = None

    async def run(self, look_at: Callable[[Key], Awaitable[float]], first: Iterable[Key]) -> None:
        """Run until cancelled. No part writes anything before everything that it watches was listed, and no part waits
        for what another one watches.

        ``look_at``: handles a key, and returns how many seconds it rests before it is handled again; may raise
        KubeError. ``first``: keys to handle even if nothing changes.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for reflector in self._reflectors.values():
                    group.create_task(reflector.run())
                for key in first:
                    self.add(key)
                for part in tuple(self._held):
                    group.create_task(self._begin(part))
                group.create_task(self._recorder.work_queue.run())
                for _ in range(_WORKERS):
                    group.create_task(self._work(look_at))
        finally:
            self.queue.close()
            self._troubles.forget()

    async def _begin(self, part: Part) -> None:
        """Let a part handle keys once it knows everything that it watches."""
        for kind in part.watches:
            await self._reflectors[kind].synced.wait()
        for key in self._held.pop(part):
            self.queue.add(key)

    async def _work(self, look_at: Callable[[Key], Awaitable[float]]) -> None:
        while True:
            key = await self.queue.take()
            if self._reflectors[self._part_of(key).needs].trouble:  # the reflector has logged it
                self.queue.done(key)
                self.queue.later(key, self._retry_policy.soon_last_s)
                continue
            try:
                rest_s = await look_at(key)
            except KubeError as error:
                self._say(key, error, self.queue.failed(key))
            except Exception:
                delay = self.queue.failed(key)
                _log.exception("%s: internal error; next attempt in %.1f s", self._named(key), delay)
            else:
                self.queue.done(key, rest_s)
                if key in self._logged:
                    del self._logged[key]
                    _log.info("%s: goes on", self._named(key))

    def _say(self, key: Key, error: KubeError, delay: float) -> None:
        """Log a failure once until it is over. Failures caused by a concurrent change, or by a namespace that is
        deleted, are not logged."""
        expected = isinstance(error, ApiError) and (error.status == 409 or error.namespace_goes)
        level = logging.DEBUG if expected or key in self._logged else logging.WARNING
        _log.log(level, "%s: %s; next attempt in %.1f s, then at longer intervals", self._named(key), error, delay)
        if not expected:
            if len(self._logged) >= _LOGGED_MAX:
                self._logged.clear()
            self._logged[key] = None
