"""Lists in pages, and watches: a stream of present objects and changes."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct

from pumice.apiserver.api.requests import Form, flag, number
from pumice.apiserver.api.selectors import Selection, selection
from pumice.apiserver.api.tables import partial, table
from pumice.apiserver.api.views import as_seen
from pumice.apiserver.objects import Target
from pumice.apiserver.refusals import Cause, Refusal, bad_request, expired, invalid
from pumice.apiserver.store import Change, Store, Stored
from pumice.model.manifest.reading.fields import Obj

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
BATCH, BATCH_BYTES = 500, 256 << 10  # lines that are written together, and their size
_encode = msgspec.json.Encoder().encode


class View(Struct, frozen=True):
    """How objects are shown to a client. ``include``: what a row of a Table has of its object."""

    target: Target
    form: Form
    include: str
    now: Callable[[], float]

    def raw(self, row: Stored) -> bytes:
        """Return an object in plain form."""
        seen = as_seen(self.target.resource, row.obj)
        return row.raw if seen is row.obj else _encode(seen)

    def one(self, row: Stored, head: bool = True) -> bytes:
        """Return an object in the requested form."""
        if not self.form.as_:
            return self.raw(row)
        obj = as_seen(self.target.resource, row.obj)
        if self.form.as_ == "Table":
            version = {"resourceVersion": str(row.version)}
            return _encode(table(self.target.resource, [obj], version, self.now(), self.include, head))
        return _encode(partial(obj))

    def many(self, rows: list[Stored], metadata: Obj) -> Iterator[bytes]:
        """Yield a list in the requested form, in parts: one per row. A long list is never in memory as a whole."""
        resource = self.target.resource
        items: Iterable[bytes] = map(self.raw, rows)
        place = "items"
        if self.form.as_ == "Table":
            head, place = table(resource, [], metadata, 0.0, self.include), "rows"
            items = map(self._cells, rows)
        elif self.form.as_:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            items = (_encode(partial(row.obj)) for row in rows)
        else:
            head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
        head.pop(place, None)
        yield _encode(head)[:-1] + b',"' + place.encode() + b'":['
        for i, item in enumerate(items):
            yield b"," + item if i else item
        yield b"]}"

    def _cells(self, row: Stored) -> bytes:
        """Return the row of a Table."""
        seen = as_seen(self.target.resource, row.obj)
        (found,) = table(self.target.resource, [seen], {}, self.now(), self.include)["rows"]
        return _encode(found)


def selection_of(target: Target, query: Mapping[str, str]) -> Selection:
    """Return the selection of a request. Raises: Refusal 400."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return selection(labels, fields, target.resource.known_fields)


def selected(
    store: Store, target: Target, chosen: Selection, after: str = "", at: int | None = None
) -> Iterator[Stored]:
    """Yield the objects that a request selects, in the order of keys. Raises: Refusal 410."""
    resource = target.resource
    prefix = f"{target.namespace}/" if target.namespace else ""
    for row in store.rows(resource.table, prefix, after, at):
        if chosen(as_seen(resource, row.obj)):
            yield row


# -- lists


class _Token(NamedTuple):
    """The start of the next page: after this key, in the list at this version."""

    version: int
    key: str


def page(store: Store, view: View, query: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a list, or a page of it, in parts.

    Raises: Refusal 400, 410 for a page of a list that is too old, 504 for a future version.
    """
    target, chosen = view.target, selection_of(view.target, query)
    limit, wanted = number(query, "limit") or 0, number(query, "resourceVersion") or 0
    if wanted > store.version:
        why = f"Too large resource version: {wanted}, current: {store.version}"
        raise Refusal(504, "Timeout", why, {"causes": [{"reason": "ResourceVersionTooLarge", "message": why}]}, 1)
    token = _token(query.get("continue", ""))
    at = token.version if token else wanted if query.get("resourceVersionMatch") == "Exact" else store.version
    found = selected(store, target, chosen, token.key if token else "", at)
    rows = list(islice(found, limit + 1)) if limit else list(found)
    metadata: Obj = {"resourceVersion": str(at)}
    if limit and len(rows) > limit:
        del rows[limit:]
        metadata["continue"] = _written(_Token(at, rows[-1].key))
        if not chosen.tests:
            metadata["remainingItemCount"] = sum(1 for _ in selected(store, target, chosen, rows[-1].key, at))
    return view.many(rows, metadata)


def _written(token: _Token) -> str:
    return base64.urlsafe_b64encode(_encode(token)).decode().rstrip("=")


def _token(text: str) -> _Token | None:
    if not text:
        return None
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError, UnicodeDecodeError):
        raise bad_request("continue key is not valid") from None


# -- watches


class Watching(Struct, frozen=True):
    """What a watch requests. ``version`` None: begin with all present objects. ``initial``: also mark their end."""

    chosen: Selection
    version: int | None
    initial: bool
    bookmarks: bool
    seconds: float


def watching_of(store: Store, target: Target, query: Mapping[str, str], seconds: float) -> Watching:
    """Return the request of a watch. ``seconds``: duration of a watch that does not state one. Raises: Refusal 400,
    422, 410."""
    initial, bookmarks = flag(query, "sendInitialEvents"), flag(query, "allowWatchBookmarks")
    if initial and (causes := _lacking(query, bookmarks)):
        raise invalid("ListOptions", "meta.k8s.io", "", causes)
    wanted = number(query, "resourceVersion") or 0
    if wanted > store.version:
        raise expired(f"too large resource version: {wanted} ({store.version})")
    if wanted and not initial:
        store.since(target.resource.table, wanted)  # a version that is too old is refused before the stream begins
    version = wanted if wanted and not initial else None
    asked = number(query, "timeoutSeconds")
    return Watching(selection_of(target, query), version, initial, bookmarks, float(asked) if asked else seconds)


def _lacking(query: Mapping[str, str], bookmarks: bool) -> list[Cause]:
    """Return what a watch must state to begin with all present objects."""
    causes = []
    if query.get("resourceVersionMatch") != "NotOlderThan":
        causes.append(Cause("resourceVersionMatch", "Required value: NotOlderThan with sendInitialEvents"))
    if not bookmarks:
        causes.append(Cause("allowWatchBookmarks", "Required value: true with sendInitialEvents"))
    return causes


async def watched(
    store: Store, view: View, watching: Watching, bookmark_s: float, alive: Callable[[], bool]
) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a watch, in batches. It ends with its time, with an ERROR if it fell behind, or not ``alive``.

    Nothing is queued while a batch is written: a client that does not read falls behind, and gets 410 later.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + watching.seconds
    name = view.target.resource.table
    with store.woken_by(name) as woken:
        watch = _WatchLines(view, watching)
        cursor = store.version if watching.version is None else watching.version
        if watching.version is None:
            there = deque(selected(store, view.target, watching.chosen))
            while there:
                yield watch.first(there)
            if watching.initial:
                yield [watch.bookmark(cursor, {INITIAL_EVENTS_END: "true"})]
        next_bookmark = loop.time() + bookmark_s
        while alive():
            woken.clear()
            try:
                lines, cursor = watch.changes(store.since(name, cursor, BATCH), cursor)
            except Refusal as refusal:
                yield [_line("ERROR", _encode(refusal.status()))]
                return
            if lines:
                yield lines
            if cursor < store.last(name):
                await asyncio.sleep(0)  # others go first
                continue
            cursor = store.version  # there was no change of this kind since
            if loop.time() >= min(next_bookmark, deadline):
                # Also without bookmarks: a time in the past would make the wait below return at once.
                next_bookmark = loop.time() + bookmark_s
                if watching.bookmarks:
                    yield [watch.bookmark(cursor, {})]
            if loop.time() >= deadline:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), max(min(next_bookmark, deadline) - loop.time(), 0.0))


class _WatchLines:
    """The lines of a watch: which changes it gets, and in which form."""

    def __init__(self, view: View, watching: Watching) -> None:
        self._view = view
        self._chosen = watching.chosen
        self._prefix = f"{view.target.namespace}/" if view.target.namespace else ""
        self._head = True  # the first row of a Table has the columns

    def change(self, change: Change) -> bytes | None:
        """Return a line, or None if this watch does not select the change. Objects that enter or leave its selection
        are added or deleted."""
        if not change.now.key.startswith(self._prefix):
            return None
        resource = self._view.target.resource
        before = change.before is not None and self._chosen(as_seen(resource, change.before.obj))
        now = not change.deleted and self._chosen(as_seen(resource, change.now.obj))
        if not (before or now):
            return None
        return self.line("MODIFIED" if before and now else "ADDED" if now else "DELETED", change.now)

    def first(self, there: deque[Stored]) -> list[bytes]:
        """Return the next lines about objects that exist when a watch begins. These objects are removed from
        ``there``."""
        lines: list[bytes] = []
        size = 0
        while there and len(lines) < BATCH and size < BATCH_BYTES:
            lines.append(self.line("ADDED", there.popleft()))
            size += len(lines[-1])
        return lines

    def changes(self, changes: list[Change], cursor: int) -> tuple[list[bytes], int]:
        """Return the next lines about changes after ``cursor``, and the version up to which they are complete."""
        lines: list[bytes] = []
        size = 0
        for change in changes:
            if size >= BATCH_BYTES:
                break
            cursor = change.version
            if line := self.change(change):
                lines.append(line)
                size += len(line)
        return lines, cursor

    def line(self, kind: str, row: Stored) -> bytes:
        head, self._head = self._head, False
        return _line(kind, self._view.one(row, head))

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        resource = self._view.target.resource
        metadata: Obj = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        found: Obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if self._view.form.as_ == "Table":
            head, self._head = self._head, False
            found = table(resource, [], metadata, 0.0, "None", head)
        elif self._view.form.as_:
            found = partial(found)
        return _line("BOOKMARK", _encode(found))


def _line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"
