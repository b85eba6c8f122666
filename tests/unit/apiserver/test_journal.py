"""What survives a restart: changes one by one, all objects anew, and what was cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.apiserver.journal import DataError, Journal, open_journal
from pumice.apiserver.objects import Deletion, unsound
from pumice.apiserver.store import Store
from tests.unit.apiserver.worlds import cluster, create, found, node, pod, queue, settle, target


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def opened(folder: Path, version: int = 1, log_bytes_max: int = 1 << 20) -> tuple[Store, Journal]:
    store = Store(version)
    return store, open_journal(folder, store, log_bytes_max=log_bytes_max)


def contents(store: Store) -> dict[str, list[tuple[str, int]]]:
    return {table: [(row.key, row.version) for row in store.rows(table)] for table in store.tables()}


def dropped(journal: Journal) -> None:
    """As when the process is killed: nothing is closed properly, the lock goes with it."""
    journal._log.close()
    journal._lock.close()


@pytest.mark.parametrize("log_bytes_max", [1 << 20, 200], ids=["log", "written anew"])
def test_everything_is_there_again(tmp_path: Path, log_bytes_max: int) -> None:
    store, journal = opened(tmp_path, log_bytes_max=log_bytes_max)
    for i in range(50):
        store.put("t", f"ns/{i % 7}", obj(f"{i % 7}", n=i))
        if i % 5 == 0:
            store.remove("t", f"ns/{i % 7}")
        store.put("u", "ünïcode \"'\n", obj("u", n=i))
    before = contents(store)
    dropped(journal)
    again, journal = opened(tmp_path, log_bytes_max=log_bytes_max)
    assert contents(again) == before
    assert again.version == store.version
    again.put("t", "ns/more", obj("more"))
    dropped(journal)
    third, journal = opened(tmp_path)
    assert contents(third) == contents(again)
    journal.close()


def test_versions_go_on_from_the_later_of_clock_and_data(tmp_path: Path) -> None:
    store, journal = opened(tmp_path, version=100)
    store.put("t", "a", obj("a"))
    journal.close()
    for version, wanted in ((50, 101), (500, 500)):
        again, journal = opened(tmp_path, version=version)
        assert again.version == wanted
        journal.close()


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    store, journal = opened(tmp_path)
    store.put("t", "a", obj("a"))
    store.put("t", "b", obj("b"))
    dropped(journal)
    log = tmp_path / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-cut])
    again, journal = opened(tmp_path)
    assert [row.key for row in again.rows("t")] == ["a"]
    assert "cut off" in caplog.text
    again.put("t", "c", obj("c"))
    dropped(journal)
    third, journal = opened(tmp_path)
    assert [row.key for row in third.rows("t")] == ["a", "c"]
    journal.close()


def test_a_crash_between_the_new_file_and_the_new_log_counts_nothing_twice(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    store.put("t", "a", obj("a"))
    store.remove("t", "a")
    store.put("t", "b", obj("b"))
    log = (tmp_path / "log.jsonl").read_bytes()
    journal.rewrite()
    assert (tmp_path / "log.jsonl").read_bytes() == b""
    dropped(journal)
    (tmp_path / "log.jsonl").write_bytes(log)
    again, journal = opened(tmp_path)
    assert contents(again) == contents(store)
    journal.close()


def test_a_format_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "objects.jsonl").write_bytes(b'{"version":1,"format":9}\n')
    for _ in range(2):  # and the folder is not left locked
        with pytest.raises(DataError, match="format 9"):
            opened(tmp_path)


@pytest.mark.parametrize("file", ["log.jsonl", "objects.jsonl"])
@pytest.mark.parametrize(
    "damage",
    [b"garbage", b"{}", b'{"v":-1,"t":"t","k":"x","o":null}', b'{"v":1e99,"t":"t","k":"x","o":null}', b"\xff" * 9]
    + [b'{"v":3,"t":"t","k":"x","o":' + b"[" * 100_000],
    ids=["no JSON", "nothing", "minus one", "no version", "no text", "deep"],
)
def test_a_damaged_line_costs_nothing_but_itself(
    tmp_path: Path, file: str, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store, journal = opened(tmp_path)
    for name in "abc":
        store.put("t", name, obj(name))
    if file == "objects.jsonl":
        journal.rewrite()
    dropped(journal)
    lines = (tmp_path / file).read_bytes().splitlines(keepends=True)
    (tmp_path / file).write_bytes(b"".join([*lines[:-1], damage + b"\n", lines[-1]]))
    again, journal = opened(tmp_path)
    assert contents(again) == contents(store)
    assert f"{file} line {len(lines)} is ignored" in caplog.text
    assert "1 lines were ignored" in caplog.text
    again.put("t", "d", obj("d"))
    journal.close()
    third, journal = opened(tmp_path)
    assert contents(third) == contents(again)
    journal.close()


@pytest.mark.parametrize("file", ["log.jsonl", "objects.jsonl"])
def test_salvage_puts_damaged_lines_aside_and_says_what_each_costs(
    tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, journal = opened(tmp_path)
    store.put("t", "a", obj("a", n=1))
    if file == "objects.jsonl":
        journal.rewrite()
    dropped(journal)
    bad = [b'{"v":7,"t":"t","k":"a","o":{"n":\xff\n', b'{"v":8,"t":"t","k":"gone","o":5}\n']
    with (tmp_path / file).open("ab") as damaged:
        damaged.writelines(bad)
    again = Store(1)
    open_journal(tmp_path, again, salvage=True).close()
    assert contents(again) == contents(store)
    assert (tmp_path / "damaged.jsonl").read_bytes() == b"".join(bad)
    assert "t a: " in caplog.text and "; it is as at version 2" in caplog.text
    assert "t gone: " in caplog.text and "; it does not exist now" in caplog.text
    caplog.clear()
    third, journal = opened(tmp_path)  # whole again, without the switch
    journal.close()
    assert contents(third) == contents(store) and "is ignored" not in caplog.text


def test_objects_are_there_where_the_first_line_is_damaged(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    store.put("t", "a", obj("a"))
    journal.rewrite()
    dropped(journal)
    lines = (tmp_path / "objects.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "objects.jsonl").write_bytes(b"x\n" + lines[1])
    again, journal = opened(tmp_path)
    assert contents(again) == contents(store)
    assert again.version == store.version
    journal.close()


METADATA = {"name": "bad", "namespace": "default", "uid": "u", "resourceVersion": "9"}


@pytest.mark.parametrize(
    ("table", "bad"),
    [
        pytest.param("pods", {"metadata": {"name": "bad", "namespace": "default"}}, id="no uid"),
        pytest.param("pods", {"metadata": 5}, id="no metadata"),
        pytest.param("pods", {"spec": None}, id="no spec"),
        pytest.param("pods", {"status": []}, id="a list as status"),
        pytest.param("pods", {"metadata": METADATA | {"ownerReferences": [5]}}, id="an owner that is none"),
        pytest.param("pods", {"metadata": METADATA | {"name": "other"}}, id="another name"),
        pytest.param("customresourcedefinitions.apiextensions.k8s.io", {"spec": {"names": 5}}, id="a definition"),
    ],
)
def test_an_object_that_no_server_kept_does_not_keep_a_server_from_starting(
    tmp_path: Path, table: str, bad: dict[str, Any]
) -> None:
    store, journal = opened(tmp_path)
    create(cluster(store=store), pod("good"))
    dropped(journal)
    with (tmp_path / "log.jsonl").open("ab") as log:
        whole = {"metadata": METADATA, "spec": {}, "status": {}} | bad
        log.write(json.dumps({"v": 1 << 50, "t": table, "k": "default/bad", "o": whole}).encode() + b"\n")
    store = Store()
    journal = open_journal(tmp_path, store, unsound)
    world = cluster(store=store)
    settle(world)
    assert found(world, "pods", "default/good") is not None
    create(world, pod("new"))
    journal.close()


def test_a_start_time_that_is_none_does_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    world = cluster(store=store)
    create(world, node("n"))
    create(world, pod("a", nodeName="n", annotations={"pumice.dev/duration": "90s"}))
    settle(world)
    row = store.find("pods", "default/a")
    assert row is not None
    store.put("pods", "default/a", {**row.obj, "status": {**row.obj["status"], "startTime": "foo"}})
    journal.close()
    store, journal = opened(tmp_path)
    assert cluster(store=store).kubelets.step() is not None
    journal.close()


def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(DataError, match="all users of this machine can write there"):
        opened(tmp_path)


def test_a_link_in_the_folder_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "log.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="log.jsonl"):
        opened(tmp_path / "data")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_folder_has_one_server(tmp_path: Path) -> None:
    _, journal = opened(tmp_path)
    with pytest.raises(DataError, match="another server"):
        opened(tmp_path)
    journal.close()
    opened(tmp_path)[1].close()


def test_a_write_that_fails_is_reported_and_is_the_last(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    journal._log.close()
    with Path("/dev/full").open("ab", buffering=0) as journal._log:
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                store.put("t", "a", obj("a"))
    assert journal.failed.is_set()
    assert journal.failure is not None
    dropped(journal)


def test_a_cluster_goes_on(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    world = cluster(store=store)
    create(world, node("n"))
    uid = create(world, queue("q"))["metadata"]["uid"]
    create(world, pod("a", nodeName="n", annotations={"pumice.dev/duration": "90s"}, owners=[uid]))
    settle(world)
    journal.close()
    store, journal = opened(tmp_path)
    again = cluster(store=store)
    assert found(again, "queues.scheduling.volcano.sh", "q")["metadata"]["uid"] == uid  # type: ignore[index]
    assert again.kubelets.step() is not None
    again.objects.delete(target(again, "queues.scheduling.volcano.sh", "q"), Deletion())
    settle(again)
    assert found(again, "pods", "default/a") is None
    journal.close()
