"""A cycle goes to a file and back and decides the same; a file that is cut, changed or made up is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice import __version__
from pumice.columns.files.parts import wanted_columns
from pumice.columns.snapshot import Shard
from pumice.columns.table import Field
from pumice.columns.tasks import TaskTable
from pumice.runtime.files import model_values, snapshot_file
from pumice.runtime.files.model_values import description_of
from pumice.runtime.files.sealed_archive import pack
from pumice.runtime.files.snapshot_file import (
    KIND,
    Cycle,
    SnapshotError,
    from_bytes,
    read_cycle,
    to_bytes,
    write_cycle,
)
from pumice.testing.build import cluster, node, pod, run
from tests.unit.columns.same import differing
from tests.unit.runtime.saved import CYCLE, NOW, Change, array, forged, head, member, members

CONTENT = to_bytes(CYCLE)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_cycle(tmp_path / "c", CYCLE)
    found = read_cycle(tmp_path / "c")
    assert (found.now, found.conf, found.lenient, found.version) == (NOW, CYCLE.conf, False, __version__)
    assert differing(found.snapshot, CYCLE.snapshot) == []
    assert run(found.snapshot, now=NOW).decisions == run(CYCLE.snapshot, now=NOW).decisions != []


def test_all_that_the_head_says_is_read_back() -> None:
    store = cluster(node("n"))
    store.shard = Shard(frozenset({"n", "m"}), hard=True)
    store.snapshot()
    cycle = Cycle(store.snapshot(), -0.1, "tab\t\u2028 and \0", lenient=True, version="9.9")
    found = from_bytes(to_bytes(cycle))
    assert (found.now, found.conf, found.lenient, found.version) == (-0.1, "tab\t\u2028 and \0", True, "9.9")
    assert (found.snapshot.number, found.snapshot.shard) == (2, store.shard)


def test_the_same_cycle_is_the_same_bytes() -> None:
    assert to_bytes(CYCLE) == CONTENT == to_bytes(from_bytes(CONTENT))


def test_everybody_can_look_into_it() -> None:
    """With NumPy's own reader, and as JSON."""
    with np.load(io.BytesIO(CONTENT), allow_pickle=False) as file:
        assert file["tasks/status"].dtype == np.int8
        assert json.loads(file["snapshot.json"])["now"] == NOW
        pods = json.loads(file["objects.json"])["lists"]["tasks.pods"]
    assert pods["name"] == ["g-0", "g-1", "g-2", "h-0", "h-1"]


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "c").touch(mode=0o644)
    write_cycle(tmp_path / "c", CYCLE)
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_file_that_cannot_be_finished_was_never_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c").write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_cycle(tmp_path / "c", CYCLE)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("c", "before")]


def test_a_snapshot_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_file, "FILE_BYTES_MAX", 1000)
    with pytest.raises(SnapshotError, match="would be larger than can be read"):
        write_cycle(tmp_path / "c", CYCLE)
    assert not list(tmp_path.iterdir())


def test_a_snapshot_of_more_values_than_can_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_values, "VALUES_MAX", 100)
    with pytest.raises(SnapshotError, match="would be larger than can be read: there are more than 100 values"):
        to_bytes(CYCLE)
    assert refused(CONTENT) == "is inconsistent: there are more than 100 values"


def test_secrets_stay_out() -> None:
    """The model has neither environments nor commands; the copy of the manifest that kubectl keeps has both."""
    whole = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": [{"name": "A", "value": "hush"}]}'}
    store = cluster(node("n", annotations=whole), pod("p", annotations=whole))
    content = to_bytes(Cycle(store.snapshot(), NOW, ""))
    assert not any(b"hush" in each for each in members(content).values())


# -- files that are not whole


def refused(content: bytes) -> str:
    with pytest.raises(SnapshotError) as found:
        from_bytes(content)
    said = str(found.value)
    assert "\n" not in said
    assert len(said) < 400
    return said


def test_a_file_that_is_cut_anywhere_is_refused() -> None:
    for end in range(len(CONTENT)):
        refused(CONTENT[:end])


def test_a_file_with_any_byte_changed_is_refused() -> None:
    for place in range(len(CONTENT)):
        changed = bytearray(CONTENT)
        changed[place] ^= 0xFF >> place % 8
        refused(bytes(changed))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_file, "FILE_BYTES_MAX", 1000)
    (tmp_path / "c").write_bytes(CONTENT)
    with pytest.raises(SnapshotError, match="is larger than"):
        read_cycle(tmp_path / "c")


# -- forged files


class Malice:
    """What a pickle can do to who reads it."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (self.place,)


def test_a_pickle_in_it_is_never_opened(tmp_path: Path) -> None:
    place = str(tmp_path / "done")
    objects = np.empty(64, dtype=object)
    objects[:] = [Malice(place)] * 64
    file = io.BytesIO()
    np.save(file, objects, allow_pickle=True)
    for name in ("tasks/status.npy", "objects.json", "snapshot.json"):
        for content in (file.getvalue(), pickle.dumps(Malice(place))):
            refused(forged(member(name, content)))
    assert not os.path.exists(place)


def without(name: str) -> Change:
    return lambda held: {each: content for each, content in held.items() if each != name}


def claimed(shape: str, descr: str = "|i1") -> bytes:
    """An array in NumPy's format that says so of itself, and has nothing in it."""
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


STATUS = "tasks/status.npy"
NO_STATUS = f"has a {STATUS} that is not an array of int8"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(head(format=2), "was written by Pumice '0.1.0', with other columns", id="another format"),
        pytest.param(head(layout="0" * 16, pumice="9.9"), "was written by Pumice '9.9'", id="another layout"),
        pytest.param(head(pumice="x" * 9999, format=2), "was written by Pumice 'xxx", id="a long version"),
        pytest.param(head(now="soon"), "has an unreadable snapshot.json", id="a moment that is none"),
        pytest.param(head(more=1), "has an unreadable snapshot.json", id="a head with more in it"),
        pytest.param(member("snapshot.json", b""), "has an unreadable snapshot.json", id="no head"),
        pytest.param(member("snapshot.json", b"\xff"), "has an unreadable snapshot.json", id="a head of bytes"),
        pytest.param(member("snapshot.json", b"[" * 99_999), "has an unreadable snapshot.json", id="a deep head"),
        pytest.param(member("snapshot.json", bytes(9 << 20)), "of which at most 8,388,608 are read", id="a long head"),
        pytest.param(without("snapshot.json"), "has no snapshot.json", id="without a head"),
        pytest.param(without("objects.json"), "has other members than a snapshot", id="without objects"),
        pytest.param(without(STATUS), "has other members than a snapshot", id="without a column"),
        pytest.param(member("../../up.npy", b""), "has other members than a snapshot", id="a member too many"),
        pytest.param(head(rows={}), "has a table with", id="rows of no table"),
        pytest.param(head(rows=lambda rows: rows | {"more": 1}), "has a table with", id="rows of another table"),
        pytest.param(head(rows=lambda rows: rows | {"tasks": 10**9}), "has a table with", id="too many rows"),
        pytest.param(
            head(rows=lambda rows: rows | {"tasks": 2**80}),
            "an unreadable snapshot.json|has a table with less",
            id="2**80",
        ),
        pytest.param(head(rows=lambda rows: rows | {"tasks": -1}), "has a table with", id="rows below 0"),
        pytest.param(
            head(rows=lambda rows: rows | {"tasks": 63}), "not an array of bool with the shape (63,)", id="63"
        ),
        pytest.param(head(rows=lambda rows: rows | {"nodes": 3}), "with the shape", id="other nodes"),
        pytest.param(head(resources=[str(i) for i in range(5000)]), "names 5,000 resources", id="many resources"),
        pytest.param(head(resources=lambda names: [*names, "z"]), "with the shape", id="another resource"),
        pytest.param(head(resources=["cpu"]), "with the shape", id="a resource that all have"),
        pytest.param(array(STATUS, lambda a: a.astype(np.int64)), NO_STATUS, id="int64"),
        pytest.param(array(STATUS, lambda a: a.astype(np.float64)), NO_STATUS, id="floats"),
        pytest.param(array(STATUS, lambda a: a.astype("S1")), NO_STATUS, id="texts"),
        pytest.param(array(STATUS, lambda a: a[:63]), NO_STATUS, id="a row too few"),
        pytest.param(array(STATUS, lambda a: np.append(a, a)), NO_STATUS, id="too many values"),
        pytest.param(array(STATUS, lambda a: a.reshape(8, 8)), NO_STATUS, id="another shape"),
        pytest.param(
            array("nodes/books.npy", np.asfortranarray),
            "has a nodes/books.npy that is not an array",
            id="columns first",
        ),
        pytest.param(
            array("tasks/node.npy", lambda a: a.astype(">i4")), "not an array of int32", id="bytes in another order"
        ),
        pytest.param(member(STATUS, b""), NO_STATUS, id="an empty member"),
        pytest.param(member(STATUS, b"\x93NUMPY"), NO_STATUS, id="a magic number alone"),
        pytest.param(member(STATUS, lambda c: c[:6] + b"\x02" + c[7:]), NO_STATUS, id="another version of arrays"),
        pytest.param(member(STATUS, lambda c: c[:-1]), NO_STATUS, id="a value too few"),
        pytest.param(member(STATUS, lambda c: c + b"\0"), NO_STATUS, id="a value too many"),
        pytest.param(member(STATUS, claimed("(64,)")), NO_STATUS, id="a shape without values"),
        pytest.param(member(STATUS, claimed("(10**12,)")), NO_STATUS, id="a shape to be computed"),
        pytest.param(member(STATUS, claimed("(" * 60 + ")" * 60)), NO_STATUS, id="a deep shape"),
        pytest.param(member(STATUS, claimed("(64,)", "|O")), NO_STATUS, id="objects"),
        pytest.param(member(STATUS, bytes(1 << 20)), "of which at most", id="an array that unpacks to more"),
        pytest.param(
            member("tasks/best_effort.npy", lambda c: c[:-1] + b"\x02"),
            "a value other than true and false",
            id="half true",
        ),
        pytest.param(member("objects.json", b"{}"), "is inconsistent: the text", id="no objects"),
        pytest.param(member("objects.json", b"[" * 99_999), "is inconsistent: the text", id="deep objects"),
        pytest.param(
            member("objects.json", lambda c: c.replace(b'"nodes":{"rows":[0,1]', b'"nodes":{"rows":[0,0]')),
            "is inconsistent: nodes: rows are not in order",
            id="a node's row twice",
        ),
        pytest.param(
            array("tasks/node.npy", lambda a: a + 99), "is inconsistent: tasks.node: row 0 names", id="rows of none"
        ),
    ],
)
def test_a_file_that_somebody_made_up_is_refused(change: Change, said: str) -> None:
    assert said in refused(forged(change)) or any(each in refused(forged(change)) for each in said.split("|"))


def test_nothing_is_made_room_for_that_is_only_claimed() -> None:
    contents = [
        forged(head(rows=lambda rows: rows | {"tasks": snapshot_file.ROWS_MAX})),
        forged(head(rows=lambda rows: rows | dict.fromkeys(rows, snapshot_file.ROWS_MAX))),
        forged(member(STATUS, claimed("(4000000000,)"))),
        forged(member("objects.json", bytes(100 << 20))),
    ]
    tracemalloc.start()
    try:
        for content in contents[:3]:
            refused(content)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
        refused(contents[3])
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


def test_an_archive_of_another_kind_is_refused() -> None:
    assert refused(pack("application/epub+zip", {})) == f"is not of kind {KIND}"
    assert refused(b"kind: Node").startswith("is not of kind")


@pytest.fixture
def fresh_layout() -> Iterator[None]:
    """The name of the layout is made once: here, after something has changed."""
    caches = (snapshot_file.layout, wanted_columns)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"more": Field(np.int8, 0, moves=False)}, id="a column more"),
        pytest.param({"node": Field(np.int64, -1, moves=True)}, id="a column of another type"),
    ],
)
def test_other_columns_are_another_version(
    fields: dict[str, Field], fresh_layout: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number has to be raised by hand."""
    monkeypatch.setattr(TaskTable, "FIELDS", {**TaskTable.FIELDS, **fields})
    assert "with other columns than" in refused(CONTENT)


def test_other_fields_of_the_model_are_another_version(fresh_layout: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_names(kind: Any) -> str:
        return description_of(kind).replace("node_name: str, ", "")

    monkeypatch.setattr(snapshot_file, "description_of", without_names)
    assert "with other columns than" in refused(CONTENT)
