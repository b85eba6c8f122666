"""The reflector: follows one kind on the API server and emits events.

A stream of initial events if the server offers it (WatchList), else a paged list and a watch. After a gap that cannot
be bridged (410, garbage), the kind is listed again and only differences are emitted, so that no deletion is lost. Of a
kind with several versions the newest one that the server has is followed. A kind that is not installed is off, with one
line in the log, until discovery shows it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from pumice.kube.api.client import Client
from pumice.kube.api.codec import BadObject, Codec, Object, read_bookmark, read_event
from pumice.kube.api.errors import ApiError, Garbage, KubeError, Unreachable
from pumice.kube.api.kinds import Kind
from pumice.kube.api.retry_policy import RetryDelays, RetryPolicy
from pumice.kube.informers.unparsable import Unparsable, UnparsableObjects
from pumice.kube.informers.watch_failures import Cause, WatchFailures
from pumice.model.events import Event, Gone, Seen
from pumice.model.events import Object as ModelObject
from pumice.runtime.memory import without_collector

Sink = Callable[[list[Event]], None]

_log = logging.getLogger("pumice.kube")


_LIVED_S = 5.0  # a connection that lasted this long was a good one
_UNENDED_MAX = 3
_GATHER_S = 0.01  # events within this time form one batch, because each bound pod causes one


def ignored(kind: Kind, unparsable: Unparsable) -> None:
    """Ignore an object that cannot be read."""


def every(value: object) -> bool:
    """Accept every object."""
    return True


class Reflector:
    """Keeps ``known`` (by key) equal to what the server has, and calls ``sink`` with every change.

    ``value``: class of the objects in events; None: no events, only ``known``. ``takes``: returns False for objects to
    ignore. ``on_unparsable``: called with objects that cannot be read. ``answered`` is set when the server first takes
    a request, ``synced`` when the first list is complete; both, if it turns out that there is nothing to wait for.
    ``streaming`` becomes False if the server does not offer initial events.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        codec: Codec,
        sink: Sink,
        value: type[ModelObject] | None,
        retry_policy: RetryPolicy | None = None,
        troubles: WatchFailures | None = None,
        takes: Callable[[Any], bool] = every,
        on_unparsable: Callable[[Kind, Unparsable], None] = ignored,
    ) -> None:
        self.kind = kind
        self.known: dict[str, Object] = {}
        self.unparsable = UnparsableObjects(kind, on_unparsable)
        self.answered = asyncio.Event()
        self.synced = asyncio.Event()
        self.streaming = True
        self.lists = 0
        self.watches = 0
        self._client, self._codec, self._sink, self._value, self._takes = client, codec, sink, value, takes
        self._retry_policy = retry_policy or RetryPolicy()
        self._troubles = troubles or WatchFailures()
        self._versions = kind.versions
        self._version = ""
        self._listed: set[str] | None = None  # keys in the list that is being read
        self._unended = 0  # streams of initial events without a marked end

    @property
    def trouble(self) -> str:
        """Why this kind is not followed at present, "" if it is."""
        return self._troubles.of(self.kind)

    async def run(self) -> None:
        """Run until cancelled."""
        retrying = RetryDelays(self._retry_policy)
        while True:
            before, started = self._version, time.monotonic()
            try:
                await self._follow()
                delay = 0.0
            except ApiError as error:
                delay = await self._refused(error, retrying)
            except Unreachable as error:
                delay = retrying.unreachable()
                if self._version == before:
                    text = f"the API server does not answer: {error.why}"
                    self._troubles.note(self.kind, Cause.UNREACHABLE, text)
                _log.debug("%s; next try in %.1f s", error, delay)
            except KubeError as error:
                delay = self._list_anew(str(error), retrying)
                self._troubles.note(self.kind, Cause.FAILS, f"{self.kind.full_name}: {error}")
            except Exception:
                delay = self._list_anew("after a fault", retrying)
                _log.exception("%s: a fault of this program", self.kind.full_name)
            if (self._version and self._version != before) or time.monotonic() - started > _LIVED_S:
                retrying.succeeded()
            elif delay == 0.0 and self._version:
                delay = retrying.refused(lasting=False)  # the watch ended at once
            await asyncio.sleep(delay)

    def _list_anew(self, why: str, retrying: RetryDelays) -> float:
        self._version = ""
        delay = retrying.relist()
        _log.info("%s: %s; listing again in %.1f s", self.kind.full_name, why, delay)
        return delay

    # -- one life of a connection --------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """List if there is nothing to continue from, then watch until the server ends it."""
        if self._version:
            await self._watch({"resourceVersion": self._version})
            return
        if self.streaming:
            try:
                await self._watch({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
                return
            except ApiError as error:
                if error.status not in (400, 405, 422):
                    raise
                self.streaming = False
                _log.info("%s: no initial events from this server (%s): listing", self.kind.full_name, error.message)
        await self._list()
        await self._watch({"resourceVersion": self._version})

    async def _list(self) -> None:
        self._listed = set()
        version = ""
        async with aclosing(self._client.pages(self.kind.list_path)) as pages:
            async for page in pages:
                self._answered()
                with without_collector():
                    self._take_page(page.items or [])
                version = page.metadata.resource_version or version
                await asyncio.sleep(0)  # let other tasks of the loop run
        if not version:
            raise Garbage(f"GET {self.kind.list_path}", "a list without resourceVersion")
        self._listing_ended(version)

    async def _watch(self, params: dict[str, str]) -> None:
        what = f"WATCH {self.kind.full_name}"
        initial = "sendInitialEvents" in params
        if initial:
            self._listed = set()
        seconds = self._retry_policy.watch_s * (1 + random.random())
        params = {**params, "allowWatchBookmarks": "true", "timeoutSeconds": str(int(seconds) or 1)}
        self.watches += 1
        opened = False
        try:
            async with aclosing(self._client.watch(self.kind.list_path, params)) as batches:
                async for lines in batches:
                    self._answered()
                    opened = True
                    with without_collector():
                        self._take_lines(lines, what)
                    if lines and self._listed is None:
                        await asyncio.sleep(_GATHER_S)
        finally:
            if opened and initial and self._listed is not None:
                self._unended += 1
                self.streaming = self._unended < _UNENDED_MAX  # the server may never mark the end
        if self._listed is not None:
            raise Unreachable(what, "the initial events ended early", False)

    # -- what comes ----------------------------------------------------------------------------------------------------

    def _take_page(self, items: list[msgspec.Raw]) -> None:
        events: list[Event] = []
        for raw in items:
            self._put(raw, events)
        if events:
            self._sink(events)

    def _take_lines(self, lines: list[bytes], what: str) -> None:
        events: list[Event] = []
        try:
            for line in lines:
                event = read_event(line, what)
                if event.type in ("ADDED", "MODIFIED"):
                    self._put(event.object, events)
                elif event.type == "DELETED":
                    self._drop(event.object, events)
                elif event.type == "BOOKMARK":
                    version, ended = read_bookmark(event.object, what)
                    if self._listed is None:
                        self._version = version or self._version
                    elif ended:
                        self._unended = 0
                        self._sink(events)
                        events = []
                        self._listing_ended(version)
                else:
                    raise Garbage(what, f"an event of type {event.type[:40]!r}")
        finally:
            if events:
                self._sink(events)

    def _put(self, raw: msgspec.Raw, events: list[Event]) -> None:
        try:
            found = self._codec.read(raw)
        except BadObject as error:
            self._saw(error.key, error.version)  # it stays as last known, and counts as listed
            self.unparsable.note(error)
            return
        if found.bad is None:
            self.unparsable.read(found.key)
        if not self._takes(found.value):
            self._leave_out(found, events)
            return
        self._saw(found.key, found.version)
        before = self.known.get(found.key)
        if before is not None:
            if before.uid != found.uid:
                events += self._gone(found.key)  # the object was replaced, so the first one was deleted
            elif before.version == found.version:
                return
        if found.bad is not None:
            self.unparsable.note(found.bad)
        self.known[found.key] = found
        if self._value is not None:
            events.append(Seen(cast(ModelObject, found.value)))

    def _leave_out(self, found: Object, events: list[Event]) -> None:
        """Ignore an object."""
        self.unparsable.gone(found.key)
        if self._listed is None:
            self._version = found.version or self._version
        if self.known.pop(found.key, None) is not None:
            events += self._gone(found.key)

    def _drop(self, raw: msgspec.Raw, events: list[Event]) -> None:
        try:
            key, _, version = self._codec.identity(raw)
        except BadObject as error:
            raise Garbage(f"WATCH {self.kind.full_name}", f"a deleted object without a name: {error.why}") from None
        self._saw(key, version)
        self.unparsable.gone(key)
        if self._listed is not None:
            self._listed.discard(key)
        if self.known.pop(key, None) is not None:
            events += self._gone(key)

    def _gone(self, *keys: str) -> list[Event]:
        return [Gone(self._value, key) for key in keys] if self._value is not None else []

    def _saw(self, key: str, version: str) -> None:
        if self._listed is not None:
            self._listed.add(key)
        else:
            self._version = version or self._version

    def _listing_ended(self, version: str) -> None:
        listed, self._listed = self._listed or set(), None
        self._forget([key for key in self.known if key not in listed])
        self.unparsable.keep(listed)
        self._version = version
        self._troubles.over(self.kind)
        self.lists += 1
        if not self.synced.is_set():
            _log.info("%s: synced, %d objects", self.kind.full_name, len(self.known))
            self.synced.set()

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            del self.known[key]
        if gone := self._gone(*keys):
            self._sink(gone)

    def _answered(self) -> None:
        self._troubles.over(self.kind)
        self.answered.set()

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    async def _refused(self, error: ApiError, retrying: RetryDelays) -> float:
        """Handle a refusal. Return how long to wait."""
        name = self.kind.full_name
        if error.expired:
            return self._list_anew(str(error), retrying)
        delay = retrying.refused(lasting=error.status in (401, 403), at_least_s=error.retry_after_s)
        match error.status:
            case 404 if retrying.believed or not self.known:
                if not await self._follow_served_version():
                    await self._wait_until_served(delay, retrying)
                return 0.0
            case 401:
                text = f"the API server does not accept these credentials: {error.message}"
                self._troubles.note(self.kind, Cause.CREDENTIALS, text, logging.ERROR, log=retrying.believed)
            case 403:
                text = f"no right to list and watch {name}: {error.message}"
                self._troubles.note(self.kind, Cause.FORBIDDEN, text, logging.ERROR, log=retrying.believed)
                if retrying.believed:
                    self._nothing_to_wait_for()
            case _:
                self._troubles.note(self.kind, Cause.FAILS, str(error), log=retrying.believed)
        return delay

    async def _follow_served_version(self) -> bool:
        """Follow the newest version of the kind that the server has. Return False if it has none, or does not say."""
        try:
            served = [kind for kind in self._versions if await self._client.served(kind)]
        except KubeError as trouble:
            _log.debug("looking for %s: %s", self.kind.full_name, trouble)
            return False
        if not served:
            return False
        if served[0].version != self.kind.version:
            self.kind = served[0]
            _log.info("%s: following version %s", self.kind.full_name, self.kind.version)
            self._codec, self._version = self._codec.in_version(self.kind), ""
        return True

    async def _wait_until_served(self, delay: float, retrying: RetryDelays) -> None:
        """Wait for a kind that is not installed: all its objects are gone, and discovery is asked from time to time."""
        name = self.kind.full_name
        self._forget(list(self.known))
        self.unparsable.keep(())
        self._version = ""
        text = f"{name} is not installed: {self.kind.gives} is off until it appears"
        if other := await self._unread_versions():
            read = ", ".join(each.version for each in self._versions)
            text = f"{name} is served in {', '.join(other)} only, and read in {read}: {self.kind.gives} is off"
            self._troubles.note(self.kind, Cause.MISSING, text)
        elif self.kind.seldom:
            self._troubles.over(self.kind)  # it may have been refused before the server said that it has no such kind
            _log.debug("%s", text)
        else:
            self._troubles.note(self.kind, Cause.MISSING, text)
        self._nothing_to_wait_for()
        while True:
            await asyncio.sleep(delay)
            if await self._follow_served_version():
                break
            delay = retrying.refused(lasting=True)
        self._troubles.over(self.kind, f"{name} is installed now: on")

    async def _unread_versions(self) -> list[str]:
        """Return the versions in which the server has the kind, and which are not read."""
        own = {each.version for each in self._versions}
        try:
            others = [each for each in await self._client.versions(self.kind.group) if each not in own]
            return [each for each in others if await self._client.served(replace(self.kind, version=each))]
        except KubeError as trouble:
            _log.debug("looking for %s: %s", self.kind.full_name, trouble)
            return []

    def _nothing_to_wait_for(self) -> None:
        if not self.kind.needed:
            self.answered.set()
            self.synced.set()
