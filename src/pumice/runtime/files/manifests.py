"""Read a cluster from files: every usable object, and a named problem for everything else."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from pumice.model.config_map import ConfigMap
from pumice.model.events import Object
from pumice.model.manifest import Decoder, ManifestError, UnsupportedKind, Value
from pumice.model.manifest.decoder import where as object_name
from pumice.model.manifest.defaults.admission import LIMIT_RANGE, RUNTIME_CLASS, AdmissionDefaults
from pumice.model.manifest.reading.fields import FieldError
from pumice.model.manifest.reading.keys import UnknownKey, unknown_keys
from pumice.model.manifest.reading.sub_group_names import odd_sub_group_names
from pumice.model.plain_words import first_names, kind_of
from pumice.model.workloads.job import BatchJob
from pumice.model.workloads.job_makers import JobMaker
from pumice.runtime.files.documents import FILE_BYTES_MAX, Document, documents
from pumice.runtime.files.kai_pods import KAI_GROUPING, KaiPods, default_queues
from pumice.runtime.files.native_queues import moved_groups
from pumice.runtime.memory import without_collector
from pumice.runtime.problems.native_groups import tree_problems
from pumice.runtime.problems.problem import Problem, Severity, unforeseen
from pumice.runtime.problems.validation import validate_cluster
from pumice.state.config_maps import with_config_maps
from pumice.state.group_trees import apart, with_trees

__all__ = ["Manifests", "Problem", "Severity", "load_manifests", "validate_cluster"]

_SUFFIXES = (".yaml", ".yml", ".json")
_LISTS_MAX = 8  # nested lists
_UNKNOWN_MAX = 200  # unknown keys that are reported
_PLACES_SHOWN = 2
_ADMISSION_KINDS = (LIMIT_RANGE, RUNTIME_CLASS)


class Manifests(Struct, frozen=True):
    """``objects`` in the order of files and documents, each kind, namespace and name once."""

    objects: tuple[Value, ...]
    problems: tuple[Problem, ...]


def load_manifests(
    paths: Iterable[str | Path], decoder: Decoder | None = None, beside: Iterable[Object] | None = None
) -> Manifests:
    """Read everything in these files and folders (``*.yaml``, ``*.yml`` and ``*.json``, also in sub-folders, by name).

    Of objects with the same kind, namespace and name one is kept, whatever the order of files: that with the highest
    numeric resourceVersion, then the latest creation, then the last by its canonical text. What LimitRanges and
    RuntimeClasses would add to pods at admission is filled in. ``beside``: groups and pods of Kubernetes' own gangs
    that exist, which groups in the files may belong to; they are among the objects that are returned, as they are then.
    None: the files are all there is.
    """
    reading = _Reading(decoder or Decoder())
    with without_collector():
        files = [file for path in paths for file in reading.files_of(Path(path))]
        for file in filter(_may_have_defaults, files):
            reading.note_defaults(file)
        for file in files:
            for document in documents(file):
                reading.take(document)
    return reading.result(beside)


def _may_have_defaults(file: Path) -> bool:
    """Return True if the file may define defaults of admission."""
    # Defaults must be known before the first pod is read. Such files are read twice, and the few bytes are looked for
    # instead of keeping the documents of all files in memory.
    try:
        found = file.read_bytes() if file.stat().st_size <= FILE_BYTES_MAX else b""
    except OSError:
        return False
    return any(kind.encode() in found for _, kind in _ADMISSION_KINDS)


class _Reading:
    """What was read so far."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.objects: dict[tuple[str, str, str], tuple[Value, str]] = {}
        self.copies: dict[tuple[str, str, str], list[str]] = {}
        self.differing: set[tuple[str, str, str]] = set()
        self.problems: list[Problem] = []
        self.unparsable: Counter[str] = Counter()
        self.unknown: dict[UnknownKey, list[str]] = {}  # the first places of each, and their number
        self.unknown_counts: Counter[UnknownKey] = Counter()
        self.first_unparsable: dict[str, str] = {}
        self.kai_pods = KaiPods()
        self.defaults = AdmissionDefaults()

    def files_of(self, path: Path) -> Iterator[Path]:
        """Yield the file itself, or the files of a folder. Links to folders are not followed."""
        if path.is_file():
            yield path
        elif not path.is_dir():
            what = "is not a file or folder" if path.exists() else "is not there"
            self.problems.append(Problem(str(path), what))
        else:
            found = sorted(self._below(path))
            if not found:
                self.problems.append(Problem(str(path), f"has no {', '.join(_SUFFIXES)} files", Severity.WARNING))
            yield from found

    def _below(self, folder: Path) -> Iterator[Path]:
        def unreadable(error: OSError) -> None:
            self.problems.append(Problem(str(error.filename), f"cannot be read: {error.strerror}"))

        for directory, _, names in os.walk(folder, onerror=unreadable):
            for name in names:
                if name.lower().endswith(_SUFFIXES) and (Path(directory) / name).is_file():
                    yield Path(directory) / name

    def note_defaults(self, file: Path) -> None:
        """Note the LimitRanges and RuntimeClasses of a file."""
        for document in documents(file):
            for where, obj in _objects_in(document):
                kind = _version_and_kind(obj)
                if kind in _ADMISSION_KINDS:
                    try:
                        self.defaults.note(kind, obj)
                    except FieldError as error:
                        what = f"{object_name(obj)}: {error}; nothing is filled in by it"
                        self.problems.append(Problem(where, what))

    def take(self, document: Document | Problem) -> None:
        for where, obj in _objects_in(document):
            if isinstance(obj, Problem):
                self.problems.append(obj)
            elif _version_and_kind(obj) not in _ADMISSION_KINDS:
                self._take(where, obj)

    def _take(self, where: str, obj: Any) -> None:
        self._name_unknown_keys(where, obj)
        for what in odd_sub_group_names(obj) if isinstance(obj, dict) else ():
            self.problems.append(Problem(where, f"{object_name(obj)}: {what}", Severity.WARNING))
        if not self.kai_pods.take(where, obj):
            self._read(where, obj)

    def _read(self, where: str, obj: Any) -> None:
        if isinstance(obj, dict) and obj.get("kind") == "Job":
            self.kai_pods.may_own(obj)
        try:
            admitted = self.defaults.admitted(_version_and_kind(obj), obj) if isinstance(obj, dict) else obj
            reading = self.decoder.read(admitted)
        except UnsupportedKind as error:
            self.kai_pods.may_own(obj)
            self.unparsable[error.kind] += 1
            self.first_unparsable.setdefault(error.kind, where)
        except ManifestError as error:
            self.problems.append(Problem(where, str(error)))
        except Exception as error:
            self.problems.append(Problem(where, unforeseen(error)))
        else:
            if reading.error is not None:
                self.problems.append(Problem(where, reading.why))
            self._keep(where, reading.value)

    def _name_unknown_keys(self, where: str, obj: Any) -> None:
        for key in unknown_keys(obj) if isinstance(obj, dict) else ():
            if key not in self.unknown_counts and len(self.unknown_counts) == _UNKNOWN_MAX:
                continue
            self.unknown_counts[key] += 1
            places = self.unknown.setdefault(key, [])
            if len(places) < _PLACES_SHOWN:
                places.append(f"{where}, {object_name(obj)}")

    def _keep(self, where: str, value: Value) -> None:
        kind = value.kind if isinstance(value, JobMaker) else type(value).__name__
        key = (kind, getattr(value, "namespace", ""), value.name)
        held = self.objects.get(key)
        if held is None:
            self.objects[key] = (value, where)
            return
        self.copies.setdefault(key, [held[1]]).append(where)
        if value != held[0]:
            self.differing.add(key)
            if _rank(value) > _rank(held[0]):
                self.objects[key] = (value, where)

    def _put_groups_in_kais_queue(self) -> None:
        """Put Kubernetes' own groups of KAI's pods that name no queue into KAI's default queue."""
        values = [value for value, _ in self.objects.values()]
        moved = list(moved_groups(values, KAI_GROUPING.scheduler_names, KAI_GROUPING.default_queue))
        for group in moved:
            key = type(group).__name__, group.namespace, group.name
            self.objects[key] = group, self.objects[key][1]
        # Once for all groups: there may be thousands.
        queues = [name for kind, _, name in self.objects if kind == "Queue"]
        for where, obj in default_queues(queues) if moved else ():
            self._read(where, obj)

    def result(self, beside: Iterable[Object] | None) -> Manifests:
        values = list(self.objects.values())
        self.kai_pods.create_pods((value, where) for value, where in values if isinstance(value, BatchJob))
        for where, obj in self.kai_pods.read():
            self._read(where, obj)
        self._put_groups_in_kais_queue()
        self.problems += self.kai_pods.problems
        for api_version, kind in sorted(self.kai_pods.owning):
            self.unparsable.pop(f"{api_version} {kind}", None)
        for key, places in self.copies.items():
            kind, namespace, name = key
            what = f"{kind} {namespace}/{name}".replace(" /", " ")
            where = first_names(places)
            if key in self.differing:
                kept = (
                    f"is defined {len(places)} times with different contents; using the one in {self.objects[key][1]}"
                )
                self.problems.append(Problem(where, f"{what} {kept}"))
            else:
                self.problems.append(Problem(where, f"{what} is defined {len(places)} times", Severity.WARNING))
        for unknown, places in self.unknown.items():
            left = self.unknown_counts[unknown] - len(places)
            where = "; ".join(places) + (f" and {left} more" if left else "")
            meant = f"; did you mean {unknown.near}?" if unknown.near else ""
            what = f"{unknown.path} unknown field (ignored){meant}"
            self.problems.append(Problem(where, what, Severity.WARNING))
        for kind, count in self.unparsable.items():
            where = self.first_unparsable[kind] + (f" and {count - 1} more" if count > 1 else "")
            self.problems.append(Problem(where, f"kind {kind} is not supported (ignored)", Severity.WARNING))
        read: list[Any] = [value for value, _ in self.objects.values()]
        # Beside the objects of a cluster, files have not all ConfigMaps, so none is looked for.
        if beside is not None:
            read = [each for each in read if not isinstance(each, ConfigMap)]
        objects = with_trees([*apart(beside or ()), *with_config_maps(read)])
        self.problems += tree_problems(objects)
        return Manifests(tuple(objects), tuple(self.problems))


def _objects_in(document: Document | Problem) -> Iterator[tuple[str, Any]]:
    """Yield the objects of a document with their places: itself, or the items of a list. A problem comes as it is."""
    if isinstance(document, Problem):
        yield document.where, document
    elif document.obj is not None:
        yield from _flat(document.where, document.obj, 0)


def _flat(where: str, obj: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield an object, or what is in a list. Items of a typed list, such as PodList, may leave out their kind."""
    kind = obj.get("kind") if isinstance(obj, dict) else None
    if not (isinstance(kind, str) and kind.endswith("List") and "items" in obj):
        yield where, obj
        return
    items = obj["items"]
    if depth >= _LISTS_MAX or not isinstance(items, list | None):
        wanted = "a list" if depth < _LISTS_MAX else f"at most {_LISTS_MAX} nested lists"
        yield where, Problem(where, f"items: found {kind_of(items)}, wanted {wanted}")
        return
    kind = kind.removesuffix("List")
    defaults = {"apiVersion": obj.get("apiVersion"), "kind": kind} if kind else {}
    for i, item in enumerate(items or ()):
        if kind and isinstance(item, dict) and item.get("kind") is None:
            item = defaults | {key: value for key, value in item.items() if value is not None}
        yield from _flat(f"{where} item {i + 1}", item, depth + 1)


def _version_and_kind(obj: Any) -> tuple[str, str]:
    """Return apiVersion and kind as texts, which may be wrong or missing."""
    return (str(obj.get("apiVersion")), str(obj.get("kind"))) if isinstance(obj, dict) else ("", "")


def _rank(value: Value) -> tuple[int, float, str]:
    """Return which of several copies is kept: the highest. It depends only on the values."""
    version = getattr(value, "resource_version", "")
    number = int(version) if version.isascii() and version.isdecimal() and len(version) < 20 else -1
    return number, getattr(value, "creation", 0.0), json.dumps(_canonical(value), sort_keys=True)


def _canonical(value: object) -> Any:
    """Return the value as plain JSON, so that its text does not depend on the order of mappings."""
    if isinstance(value, Struct):
        return {name: _canonical(part) for name, part in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _canonical(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_canonical(part) for part in value]
    return value if isinstance(value, str | int | float | None) else str(value)
