"""The newest summary, the documents made of it, and the pages that wait for the next."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from pumice.web import documents
from pumice.web.jobs_query import JobsIndex
from pumice.web.summary import CycleSummary

_DOCUMENTS: Mapping[str, Callable[[CycleSummary], dict[str, Any]]] = MappingProxyType(
    {
        "overview": documents.overview,
        "queues": documents.queues,
        "nodes": documents.nodes,
        "choices": documents.choices,
    }
)
DOCUMENTS = tuple(_DOCUMENTS)


class Feed:
    """What pages read. ``number`` counts summaries, so that a page knows whether it shows the newest.

    All methods are for the thread of the event loop.
    """

    def __init__(self) -> None:
        self.number = 0
        #: When a page asked last, or -inf, in seconds of the clock that ``asked`` is given.
        self.asked_at = -math.inf
        self.index: JobsIndex | None = None
        self._encoded: dict[str, bytes] = {}
        self._next = asyncio.Event()

    @property
    def summary(self) -> CycleSummary | None:
        """The newest summary, None before the first cycle."""
        return None if self.index is None else self.index.summary

    def publish(self, summary: CycleSummary) -> None:
        """Replace the summary, and wake the pages that wait."""
        self.index = JobsIndex(summary)
        self.number += 1
        # Encoded once, and not for each viewer.
        self._encoded.clear()
        self._next.set()
        self._next = asyncio.Event()

    def asked(self, now: float) -> None:
        """Note that a page is open."""
        self.asked_at = now

    async def newer_than(self, number: int) -> int:
        """Wait for a summary that is newer than one. Return its number."""
        while self.number <= number:
            await self._next.wait()
        return self.number

    def document(self, name: str) -> bytes:
        """Return one of DOCUMENTS as JSON, with the head of the cycle."""
        found = self._encoded.get(name)
        if found is None:
            found = self._encoded[name] = self.encoded(_DOCUMENTS[name])
        return found

    def encoded(self, make: Callable[[CycleSummary], dict[str, Any]]) -> bytes:
        """Return what is made of the summary as JSON, with the head of the cycle."""
        summary = self.summary
        if summary is None:
            return msgspec.json.encode({"number": 0, "head": None, "data": None})
        return msgspec.json.encode({"number": self.number, "head": documents.head(summary), "data": make(summary)})
