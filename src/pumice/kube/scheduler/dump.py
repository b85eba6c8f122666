"""Write what a scheduler knows, as a snapshot and as manifests. ``pumice schedule`` decides on either as the scheduler
would have.

In the manifests, decisions that are not confirmed yet count as done, as they do in the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from errno import EEXIST
from pathlib import Path
from shlex import join

import msgspec

from pumice.columns.snapshot import Snapshot
from pumice.kube.api.encode_objects import object_of
from pumice.model.config_map import ConfigMap
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.files.known_objects import groups_in, pods_in
from pumice.runtime.files.snapshot_file import Cycle, write_cycle
from pumice.state.group_trees import apart
from pumice.state.store import Store

_encode = msgspec.json.Encoder().encode
CONF_NAME = "volcano-scheduler.conf"
SNAPSHOT_NAME = "cycle.pumice"
_SAME_NAME_MAX = 100
_IN_SNAPSHOTS = ("--scheduler-name=", "--lenient-conf")  # flags whose effect a snapshot contains


def objects_of(store: Store, snapshot: Snapshot, now: float) -> dict[str, list[Object]]:
    """Return objects by name of their file; nodes in the order of their arrival. ``now``: for fields that need a
    time."""
    return {
        "nodes": list(store.nodes.values()),
        "hypernodes": list(store.hypernodes.values()),
        "priorityclasses": list(store.priority_classes.values()) if store.use_priority_classes else [],
        "queues": list(store.queues.values()),
        "podgroups": list(_as_heard(groups_in(snapshot.tables))),
        "pods": list(_as_heard(pods_in(snapshot.tables, now))),
        **_config_maps(pods_in(snapshot.tables, now)),
        **{name: values for name, values in store.beside().items() if values},
    }


def _as_heard(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield objects of the API: instead of PodGroups that only a store has, the trees of groups and the Workloads of
    which they were made."""
    of_workloads: list[Object] = []
    for each in objects:
        if isinstance(each, PodGroup) and each.native is not None and not each.native.has_object:
            of_workloads.append(each)
        else:
            yield from tuple(apart((each,))) or (each,)
    # All at once: several pod groups may be of one Workload.
    yield from apart(of_workloads)


def _config_maps(pods: Iterable[Pod]) -> dict[str, list[Object]]:
    """Return ConfigMaps by name of their file, with which the same ones are missing as for these pods; empty if none
    is missing."""
    needing = [pod for pod in pods if pod.config_maps]
    # None is looked for in a namespace without any, and each namespace of a cluster has this one.
    found = {(pod.namespace, "kube-root-ca.crt") for pod in needing if pod.spec.missing_config_maps}
    places = {namespace for namespace, _ in found}
    found |= {
        (pod.namespace, name)
        for pod in needing
        if pod.namespace in places
        for name in pod.config_maps
        if name not in pod.spec.missing_config_maps
    }
    return {"configmaps": [ConfigMap(*each) for each in sorted(found)]} if found else {}


def write_dump(
    store: Store, conf: str, folder: Path, now: float, flags: Sequence[str] = (), *, lenient: bool = False
) -> Path:
    """Create a new folder below ``folder`` with a snapshot, a file per kind, the policy, and commands that decide on
    them.

    ``lenient``: a part of ``conf`` was left out. ``flags``: further flags of the commands. Raises: OSError.
    """
    place, snapshot = _new_folder(folder, f"pumice-dump-{int(now)}"), store.snapshot()
    write_cycle(place / SNAPSHOT_NAME, Cycle(snapshot, now, conf, lenient))
    for name, values in objects_of(store, snapshot, now).items():
        _write(place / f"{name}.yaml", _documents(values))
    _write(place / CONF_NAME, [conf.encode()])
    known = [flag for flag in flags if not flag.startswith(_IN_SNAPSHOTS)]
    commands = (str(place / SNAPSHOT_NAME), *known), (str(place), "--now", repr(now), *flags)
    _write(place / "README", [f"{join(('pumice', 'schedule', *words))}\n".encode() for words in commands])
    return place


def _new_folder(folder: Path, name: str) -> Path:
    """Return a new folder, so that nothing is written into an existing one, which may be foreign."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, _SAME_NAME_MAX):
        place = folder / (f"{name}-{number}" if number > 1 else name)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
            return place
    raise FileExistsError(EEXIST, "there are too many dumps of this second already", str(folder / name))


def _documents(values: Iterable[Object]) -> Iterator[bytes]:
    """Yield YAML with each document as JSON, which is read many times faster."""
    for value in values:
        yield b"---\n" + _encode(object_of(value)) + b"\n"


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.writelines(parts)
