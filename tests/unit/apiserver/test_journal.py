"""What survives a restart: changes one by one, all objects anew, and what was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.apiserver.journal import DataError, Journal, open_journal
from pumice.apiserver.objects import Deletion
from pumice.apiserver.store import Store
from tests.unit.apiserver.worlds import cluster, create, found, node, pod, queue, settle, target


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def opened(folder: Path, version: int = 1, log_bytes_max: int = 1 << 20) -> tuple[Store, Journal]:
    store = Store(version)
    return store, open_journal(folder, store, log_bytes_max)


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
    journal._rewrite()
    assert (tmp_path / "log.jsonl").read_bytes() == b""
    dropped(journal)
    (tmp_path / "log.jsonl").write_bytes(log)
    again, journal = opened(tmp_path)
    assert contents(again) == contents(store)
    journal.close()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        pytest.param("log.jsonl", b"garbage\n{}\n", "log.jsonl line 1 is damaged", id="log"),
        pytest.param("objects.jsonl", b"{}\n", "objects.jsonl line 1", id="head"),
        pytest.param("objects.jsonl", b'{"version":1,"format":9}\n', "format 9", id="format"),
        pytest.param("objects.jsonl", b'{"version":1,"format":1}\nx\n', "objects.jsonl line 2", id="objects"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, text: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(text)
    for _ in range(2):  # and the folder is not left locked
        with pytest.raises(DataError, match=told):
            opened(tmp_path)


def test_a_folder_has_one_server(tmp_path: Path) -> None:
    _, journal = opened(tmp_path)
    with pytest.raises(DataError, match="another server"):
        opened(tmp_path)
    journal.close()
    opened(tmp_path)[1].close()


def test_a_write_that_fails_is_told_and_is_the_last(tmp_path: Path) -> None:
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
