"""Key pairs for jobs with the plugin ssh, made in threads.

openssl takes tenths of a second for a pair. On the event loop, jobs of one tenant would keep it from all else for
minutes, and the scheduler from its Lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pumice.runtime.controllers.job_ssh import Keys, NewKeys, NoKeys, new_keys

T = TypeVar("T")


class NotPrepared(Exception):
    """No pair has been made yet."""


class PreparedKeys:
    """Pairs that are made and not used yet, or why none could be made."""

    def __init__(self, make: NewKeys = new_keys) -> None:
        self._make = make
        self._made: list[Keys | NoKeys] = []

    async def with_keys(self, use: Callable[[NewKeys], T]) -> T:
        """Return what ``use`` returns. It is called again when a pair is made for which it asked, so it must change
        nothing before it asks. Raises: NoKeys, if it lets that through."""
        while True:
            try:
                return use(self._take)
            except NotPrepared:
                # Another job may take the pair first; then one more is made.
                self._made.append(await asyncio.to_thread(self._one))

    def _take(self) -> Keys:
        if not self._made:
            raise NotPrepared
        found = self._made.pop()
        if isinstance(found, NoKeys):
            raise found
        return found

    def _one(self) -> Keys | NoKeys:
        try:
            return self._make()
        except NoKeys as error:
            return error
