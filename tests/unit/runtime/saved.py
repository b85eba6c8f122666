"""A cycle to save, and forged files: sealed, and wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from pumice.runtime.files.sealed_archive import Archive, pack
from pumice.runtime.files.snapshot_file import KIND, Cycle, to_bytes
from pumice.testing.build import cluster, node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF

NOW = 1_800_000_000.25
Members = dict[str, bytes]
Change = Callable[[Members], Members]

STORE = cluster(
    node("n0", 2), node("n1", 2), queue("q"), podgroup("g", 3, "q"), pods("g", 3), podgroup("h", 2, "q"), pods("h", 2)
)
CYCLE = Cycle(STORE.snapshot(), NOW, DEFAULT_CONF)


def members(content: bytes) -> Members:
    archive = Archive(content, KIND)
    return {name: archive.content(name, 1 << 30) for name in sorted(archive.names)}


def forged(change: Change, cycle: Cycle = CYCLE) -> bytes:
    """The file with members changed, and sealed anew."""
    return pack(KIND, change(members(to_bytes(cycle))))


def head(**changes: Any) -> Change:
    """Another head; a function is given what was there."""

    def change(held: Members) -> Members:
        text = json.loads(held["snapshot.json"])
        for name, value in changes.items():
            text[name] = value(text[name]) if callable(value) else value
        return held | {"snapshot.json": json.dumps(text).encode()}

    return change


def member(name: str, content: bytes | Callable[[bytes], bytes]) -> Change:
    """Another content; a function is given what was there."""
    return lambda held: held | {name: content(held[name]) if callable(content) else content}


def array(name: str, change: Callable[[Any], Any], **saving: Any) -> Change:
    """Another array in place of one."""

    def changed(content: bytes) -> bytes:
        file = io.BytesIO()
        np.save(file, change(np.load(io.BytesIO(content))), **saving)
        return file.getvalue()

    return member(name, changed)
