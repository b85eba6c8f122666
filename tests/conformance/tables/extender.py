"""Checks of the function tables of extender."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.model.pod import Pod
from pumice.model.resources import Resource
from pumice.volcano.plugins.extender import concerns, names_one
from tests.conformance.tables.objects import Raw, decoded
from tests.conformance.tables.table import Row, disagreement, table

_FOLDER = "plugins-extender"


@table(f"{_FOLDER}/TestHasResourcesInList.yaml")
def names_one_of_them(row: Row) -> str | None:
    found = names_one(frozenset(row["managedResources"]), Resource.from_list(row.get("resources") or {}))
    return disagreement(found, row.get("expected", False))


@table(f"{_FOLDER}/TestHasManagedResources.yaml")
def containers_name_one(row: Row) -> str | None:
    return disagreement(_concerns(row, {"containers": row["containers"]}), row.get("expected", False))


@table(f"{_FOLDER}/TestIsInterested.yaml")
def is_asked_about(row: Row) -> str | None:
    return disagreement(_concerns(row, row["pod"]["spec"]), row.get("expected", False))


def _concerns(row: Row, spec: Raw) -> bool:
    managed: Iterable[str] = row.get("managedResources") or ()
    (pod,) = decoded(Pod=[{"metadata": {"name": "p"}, "spec": spec}])
    assert isinstance(pod, Pod)
    return concerns(frozenset(managed), pod.spec)
