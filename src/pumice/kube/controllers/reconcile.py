"""The loop of every controller: follow kinds, look at each key that a change concerns, try again what fails."""

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
_SAID_MAX = 10_000
_log = logging.getLogger("pumice.controllers")


class Part(NamedTuple):
    """A controller of a loop. ``needs``: the kind without which none of its keys is looked at: what that would find
    missing may be there. ``watches``: kinds that it must have listed before it looks at anything."""

    needs: Kind
    watches: tuple[Kind, ...]


class Reconciler(Generic[Key]):
    """One run, from an empty view.

    Say what is followed (``follow``), then ``run``. What is told of objects adds keys; each is looked at by one worker
    at a time, once its part has begun, and ``writing`` carries out what is wanted then. A key whose look fails comes
    again, later and later, and that is said once until it goes on.
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
        """``clock``: seconds since the epoch. ``named``: a key as the log says it. ``part_of``: which of the
        ``parts`` looks at a key."""
        self.queue: KeyQueue[Key] = KeyQueue()
        self._client, self._named, self._part_of = client, named, part_of
        self._held: dict[Part, dict[Key, None]] = {part: {} for part in parts}  # of those that have not begun
        self._retry_policy, self._troubles = retry_policy or RetryPolicy(), troubles or WatchFailures()
        self._teller = EventRecorder(client, "pumice", now=clock)
        self.writing = Writing(client, self._teller.tell)
        self._reflectors: dict[Kind, Reflector] = {}
        self._said: dict[Key, None] = {}  # what fails, and was said to

    def follow(self, codec: Codec, put: Callable[[Obj], None], drop: Callable[[str], None]) -> None:
        """Keep in step with the kind of a codec that reads dictionaries.

        ``put`` hears of objects that are there, new or changed, ``drop`` of the keys of those that are gone.
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
        """One object as the server has it, None where it is not there or may not be read. Raises: KubeError."""
        try:
            found: Obj = await self._client.get(kind.path(key))
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return None
        return found

    def add(self, key: Key) -> None:
        """A key has to be looked at: now, or when its part begins."""
        held = self._held.get(self._part_of(key))
        if held is None:
            self.queue.add(key)
        else:
            held[key] = None

    async def run(self, look_at: Callable[[Key], Awaitable[float]], first: Iterable[Key]) -> None:
        """For ever, until cancelled. No part writes anything before everything that it watches was listed, and none
        waits for what another one watches.

        ``look_at`` answers how long, in seconds, the key rests before it is looked at again, and may raise KubeError.
        ``first``: keys to look at however little changes.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for reflector in self._reflectors.values():
                    group.create_task(reflector.run())
                for key in first:
                    self.add(key)
                for part in tuple(self._held):
                    group.create_task(self._begin(part))
                group.create_task(self._teller.lane.run())
                for _ in range(_WORKERS):
                    group.create_task(self._work(look_at))
        finally:
            self.queue.close()
            self._troubles.forget()

    async def _begin(self, part: Part) -> None:
        """Let a part look at keys once it knows all that it watches."""
        for kind in part.watches:
            await self._reflectors[kind].synced.wait()
        for key in self._held.pop(part):
            self.queue.add(key)

    async def _work(self, look_at: Callable[[Key], Awaitable[float]]) -> None:
        while True:
            key = await self.queue.take()
            if self._reflectors[self._part_of(key).needs].trouble:  # it has said so itself
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
                if key in self._said:
                    del self._said[key]
                    _log.info("%s: goes on", self._named(key))

    def _say(self, key: Key, error: KubeError, delay: float) -> None:
        """Once until it goes on. Not what comes of somebody else's change, nor of a namespace that is deleted."""
        expected = isinstance(error, ApiError) and (error.status == 409 or error.namespace_goes)
        level = logging.DEBUG if expected or key in self._said else logging.WARNING
        _log.log(level, "%s: %s; next attempt in %.1f s, then at longer intervals", self._named(key), error, delay)
        if not expected:
            if len(self._said) >= _SAID_MAX:
                self._said.clear()
            self._said[key] = None
