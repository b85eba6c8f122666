"""Initial contents of a cluster: nodes by number, and objects of manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.refusals import Refusal
from pumice.model.manifest.reading.fields import Obj
from pumice.model.node import Node
from pumice.runtime.files.documents import Document, documents
from pumice.runtime.problems.problem import Problem, unforeseen

_SUFFIXES = (".yaml", ".yml", ".json")
_FIRST = ("CustomResourceDefinition", "Namespace", "PriorityClass", "Queue")  # kinds that others refer to


def node_object(node: Node) -> Obj:
    """Return a node as an object of the API: its name, labels and amounts."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "status": {"capacity": node.capacity.to_list(), "allocatable": node.allocatable.to_list()},
    }


def place_manifests(cluster: Cluster, paths: Iterable[Path]) -> list[Problem]:
    """Create everything in these files and folders. What cannot be created is a problem, and the rest is used."""
    problems: list[Problem] = []
    found: list[Document] = []
    for path in paths:
        for file in _files(path):
            for document in documents(file):
                if isinstance(document, Problem):
                    problems.append(document)
                else:
                    found += _items(document)
    order = {kind: i for i, kind in enumerate(_FIRST)}
    for document in sorted(found, key=lambda d: order.get(str(d.obj.get("kind")), len(order))):
        try:
            _place(cluster, document.obj)
        except Refusal as refusal:
            problems.append(Problem(document.where, refusal.message))
        except Exception as error:
            problems.append(Problem(document.where, unforeseen(error)))
    return problems


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
    else:
        yield path


def _items(document: Document) -> Iterator[Document]:
    """Yield the objects of a document: itself, or those of a list."""
    obj = document.obj
    if not isinstance(obj, dict):
        return
    if str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        for i, item in enumerate(obj["items"], 1):
            if isinstance(item, dict):
                yield Document(f"{document.where} item {i}", item)
        return
    yield document


def _place(cluster: Cluster, obj: Obj) -> None:
    """Create an object, and its namespace if that does not exist."""
    metadata = obj.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if isinstance(namespace, str) and namespace:
        cluster.place({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.place(obj)
