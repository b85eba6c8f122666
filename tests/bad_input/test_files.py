"""Groups that cannot be taken as they are, in files: named with object, field and what counts instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.rows import SCHEDULERS, Obj, Row, cluster, message_of, native, pods, rows_of
from tests.unit.cli.kit import run

CASES = [pytest.param(dialect, row, id=f"{dialect}: {row.name}") for dialect in SCHEDULERS for row in rows_of(dialect)]


def beside(dialect: str) -> list[Obj]:
    """Return a gang with nothing wrong, in another namespace."""
    found = [native("PodGroup", "g", 2), *pods(dialect, 2)]
    return [{**each, "metadata": {**each["metadata"], "namespace": "well"}} for each in found]


@pytest.mark.parametrize(("dialect", "row"), CASES)
def test_a_mistake_is_named_and_holds_up_nothing_else(tmp_path: Path, dialect: str, row: Row) -> None:
    items = [*cluster(dialect), *row.objects(dialect), *beside(dialect)]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (tmp_path / "kai.conf").write_text("dialect: kai\n")
    policy = ("--conf", tmp_path / "kai.conf") if dialect == "kai" else ()
    done = run("schedule", tmp_path / "all.json", *policy, "--json")
    answer = json.loads(done.out)
    binds = answer["binds"]
    assert {pod for pod in binds if pod.startswith("well/")} == {"well/p0", "well/p1"}
    assert len(binds) == 2 + row.bound
    count = sum(each["kind"] == "Pod" for each in row.objects(dialect))
    assert len(answer["unscheduled"]) == count - row.bound, "no pod is lost"
    assert message_of(row, dialect) in done.out.replace('\\"', '"') + done.err
