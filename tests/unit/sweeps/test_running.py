"""Universes are run once, kept when they are finished, and tried again when a worker dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from pumice.library.errors import InputError
from pumice.sweeps.engines import Engine, engine_of, local_engine
from pumice.sweeps.folder import SweepFolder
from pumice.sweeps.plan import Plan
from pumice.sweeps.results import arrow_bytes, rows_of, settings_by, table_of
from pumice.sweeps.running import run_all
from pumice.sweeps.sharing import TRIES
from pumice.sweeps.universe import Universe, UniverseResult, run_universe
from tests.unit.sweeps.kit import CONF, plan

HERE = Engine(lambda: ThreadPoolExecutor(1), 1)


def written(universe: Universe) -> bytes:
    """Return a row without a simulation; seed 13 raises, seed 66 ends its process, seed 99 does so the first time."""
    if universe.seed == 13:
        raise ValueError("thirteen")
    mark = Path(universe.plugins_dir) / f"{universe.seed}"
    if universe.seed == 66 or (universe.seed == 99 and not mark.exists()):
        mark.write_text("")
        os._exit(7)
    value = float(universe.seed) + (10.0 if universe.policy == CONF else 0.0)
    return msgspec.json.encode(UniverseResult(universe.digest, "d", "done", {"wait_mean": value, "use_cpu": 0.5}, True))


def seeds(tmp_path: Path, *numbers: int) -> list[Universe]:
    first = plan().universes[0]
    return [msgspec.structs.replace(first, seed=number, plugins_dir=str(tmp_path)) for number in numbers]


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    universes, store, run = seeds(tmp_path, 1, 2, 3), SweepFolder(tmp_path / "out"), []
    assert run_all(universes[:2], HERE, store, run.append, written) == []
    assert run_all(universes, HERE, store, run.append, written) == []
    assert run == universes


@pytest.mark.parametrize("cut", [b"", b"{", b'{"universe":"x","digest":"d","ending":"done","figures":{}}'])
def test_a_row_that_was_cut_off_is_run_again(tmp_path: Path, cut: bytes) -> None:
    (universe,), store = seeds(tmp_path, 1), SweepFolder(tmp_path)
    run_all([universe], HERE, store, work=written)
    whole = store.content(universe.digest)
    store.put(universe.digest, cut)
    assert store.row(universe.digest) is None
    run_all([universe], HERE, store, work=written)
    assert store.content(universe.digest) == whole


def test_an_error_costs_one_universe(tmp_path: Path) -> None:
    universes, store = seeds(tmp_path, 12, 13, 14), SweepFolder(tmp_path)
    (failure,) = run_all(universes, HERE, store, work=written)
    assert failure.universe.seed == 13 and failure.why == "ValueError: thirteen"
    assert [store.row(each.digest) is not None for each in universes] == [True, False, True]


@pytest.mark.slow
def test_a_worker_that_dies_is_tried_again_and_then_named(tmp_path: Path) -> None:
    universes, store = seeds(tmp_path, 99, 66, 2), SweepFolder(tmp_path)
    (failure,) = run_all(universes, local_engine(1), store, work=written)
    assert failure.universe.seed == 66 and failure.why == f"its worker died {TRIES} times"
    assert [store.row(each.digest) is not None for each in universes] == [True, False, True]


def test_few_universes_are_in_flight(tmp_path: Path) -> None:
    most = 0

    class Counting(ThreadPoolExecutor):
        flying = 0

        def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
            nonlocal most
            Counting.flying += 1
            most = max(most, Counting.flying)
            future = super().submit(fn, *args, **kwargs)
            future.add_done_callback(lambda _: setattr(Counting, "flying", Counting.flying - 1))
            return future

    def opened() -> Executor:
        return Counting(8)

    run_all(seeds(tmp_path, *range(40)), Engine(opened, 3), SweepFolder(tmp_path), work=written)
    assert 1 <= most <= 3


def finished(found: Plan, folder: Path) -> bytes:
    return arrow_bytes(table_of(found, rows_of(found, SweepFolder(folder))))


@pytest.mark.slow
def test_shards_and_processes_give_equal_bytes(tmp_path: Path) -> None:
    found = plan(policies=["default", CONF], seeds="0", until="5m")
    run_all(found.universes, HERE, SweepFolder(tmp_path / "here"))
    run_all(found.universes, local_engine(2), SweepFolder(tmp_path / "processes"))
    whole = SweepFolder(tmp_path / "whole")
    for number in (1, 2):
        part = SweepFolder(tmp_path / f"part-{number}")
        run_all(found.shard(number, 2), HERE, part)
        assert whole.take(part, [each.digest for each in found.universes]) == len(found.shard(number, 2))
    for universe in found.universes:
        rows = {SweepFolder(tmp_path / name).content(universe.digest) for name in ("here", "processes", "whole")}
        assert rows == {run_universe(universe)}
    tables = {finished(found, tmp_path / name) for name in ("here", "processes", "whole")}
    assert len(tables) == 1 and len(rows_of(found, whole)) == 2


def test_the_best_setting_is_compared_within_seeds(tmp_path: Path) -> None:
    found = plan(policies=["default", CONF], seeds="0..4")
    store = SweepFolder(tmp_path)
    run_all(found.universes, HERE, store, work=written)
    best, other = settings_by(rows_of(found, store), "wait_mean")
    assert best.policy == "default" and best.value.mean == 2.0 and best.behind is None
    assert other.behind is not None and other.behind.mean == other.behind.low == 10.0 and other.is_worse
    equal = settings_by(rows_of(found, store), "use_cpu")
    assert not any(each.is_worse for each in equal)
    with pytest.raises(ValueError, match="found 'wait', wanted one of wait_mean, use_cpu"):
        settings_by(rows_of(found, store), "wait")


@pytest.mark.parametrize("name", ["threads", "dask://", "ray://", "dask"])
def test_an_engine_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="wanted local, dask://HOST:PORT, ray or ray://HOST:PORT"), engine_of(name, 1):
        pass


def test_a_ray_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise Exception("the node timed out\nduring startup")  # Ray raises no class of its own

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with (
        pytest.raises(InputError, match="engine: ray: no cluster answers: the node timed out during startup"),
        engine_of("ray", 1),
    ):
        pass


def test_whether_less_is_better_follows_from_the_name_of_a_figure() -> None:
    import pumice
    from pumice.report.comparison import figures_of, less_is_better
    from tests.unit.sweeps.kit import DEMO

    for figure in figures_of(pumice.load(DEMO).simulate(until="5m").summary):
        assert less_is_better(figure.name) == figure.less_is_better, figure
