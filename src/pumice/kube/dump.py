"""What a scheduler knows, as manifests: ``pumice schedule`` decides on them as the scheduler would have.

What was decided and is not confirmed yet counts as done: that is how the store has it, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from errno import EEXIST
from pathlib import Path
from shlex import join

import msgspec
import numpy as np

from pumice.columns.tables import Tables
from pumice.kube.objects_out import object_of
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.status import ALLOCATED_STATUSES, TaskStatus
from pumice.state.store import Store

_encode = msgspec.json.Encoder().encode
CONF_NAME = "volcano-scheduler.conf"
_SAME_NAME_MAX = 100


def objects_of(store: Store, now: float) -> dict[str, list[Object]]:
    """By name of the file to put them into; nodes in the order in which they came. ``now``: where a time is needed."""
    tables = store.snapshot().tables
    jobs = tables.jobs
    return {
        "nodes": list(store.nodes.values()),
        "hypernodes": list(store.hypernodes.values()),
        "priorityclasses": list(store.priority_classes.values()) if store.use_priority_classes else [],
        "queues": list(store.queues.values()),
        "podgroups": [jobs.groups[row] for row in np.flatnonzero(jobs.alive).tolist()],
        "pods": list(_pods(tables, now)),
    }


def _pods(tables: Tables, now: float) -> Iterator[Pod]:
    tasks, names = tables.tasks, tables.nodes.facts.names
    for row in np.flatnonzero(tasks.alive).tolist():
        pod, status, node = tasks.pods[row], TaskStatus(int(tasks.status[row])), int(tasks.node[row])
        if status in ALLOCATED_STATUSES and node >= 0 and not pod.node_name:
            pod = replace(pod, node_name=names[node])
        elif status is TaskStatus.RELEASING and pod.deletion is None:
            pod = replace(pod, deletion=now)
        yield pod


def write_dump(store: Store, conf: str, folder: Path, now: float, flags: Sequence[str] = ()) -> Path:
    """A new folder below ``folder``, with a file a kind, the policy, and the command that decides on them.

    ``flags``: what that command needs besides. Raises: OSError.
    """
    place = _new_folder(folder, f"pumice-dump-{int(now)}")
    for name, values in objects_of(store, now).items():
        _write(place / f"{name}.yaml", _documents(values))
    _write(place / CONF_NAME, [conf.encode()])
    _write(place / "README", [f"{join(('pumice', 'schedule', str(place), '--now', repr(now), *flags))}\n".encode()])
    return place


def _new_folder(folder: Path, name: str) -> Path:
    """Ours alone: what is there already, perhaps put there by others, is not written into."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, _SAME_NAME_MAX):
        place = folder / (f"{name}-{number}" if number > 1 else name)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
            return place
    raise FileExistsError(EEXIST, "there are too many dumps of this second already", str(folder / name))


def _documents(values: Iterable[Object]) -> Iterator[bytes]:
    """YAML, with each document in JSON: it is read many times faster."""
    for value in values:
        yield b"---\n" + _encode(object_of(value)) + b"\n"


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.writelines(parts)
