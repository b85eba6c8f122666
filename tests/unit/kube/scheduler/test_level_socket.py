"""The log level of a scheduler that runs: for a time, by who may come to its folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.kube.scheduler.level_socket import NAME, Levels, level_socket
from pumice.kube.scheduler.logs import V2, V4
from tests.unit.cli.kit import Result, run


@pytest.fixture
def ours() -> Iterator[logging.Logger]:
    """The project's logger at -v 2, and afterwards as it was."""
    logger = logging.getLogger("pumice")
    before = logger.level
    logger.setLevel(V2)
    yield logger
    logger.setLevel(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "socks"


async def asked(folder: Path, *words: str) -> Result:
    """``pumice log-level``, beside the scheduler that it asks."""
    return await asyncio.to_thread(run, "log-level", f"--socket-dir={folder}", *words)


async def test_it_is_set_for_a_time(ours: logging.Logger, folder: Path) -> None:
    async with level_socket(folder):
        assert (await asked(folder)).out == "2\n"
        assert (await asked(folder, "4", "--for=1h")).out == "4\n"
        assert ours.level == V4
        assert (await asked(folder)).out == "4\n"
    assert ours.level == V2, "as it was, when it ends"
    assert not (folder / NAME).exists()


async def test_it_is_as_before_when_the_time_is_over(ours: logging.Logger) -> None:
    levels, over = Levels(ours), asyncio.Event()
    levels.set(4, 3600.0)
    levels.set(5, 0.0)
    asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_later(0.0, over.set))
    await over.wait()
    assert levels.verbosity == 2


@pytest.mark.parametrize("words", [("0",), ("11",), ("high",), ("4", "--for=0"), ("4", "--for=2d")])
async def test_what_makes_no_sense_changes_nothing(ours: logging.Logger, folder: Path, words: tuple[str, ...]) -> None:
    async with level_socket(folder):
        reports = await asked(folder, *words)
        assert reports.code == 2
        assert len(reports.lines("error")) == 1
        assert ours.level == V2


async def test_nobody_else_may_come_to_it(folder: Path) -> None:
    async with level_socket(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(PermissionError, match="not ours alone"):
        async with level_socket(folder):
            pass


async def test_what_a_killed_one_left_is_no_hindrance(ours: logging.Logger, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / NAME).touch()
    async with level_socket(folder):
        assert (await asked(folder)).out == "2\n"


async def test_no_scheduler_is_one_line(folder: Path) -> None:
    reports = await asked(folder, "4")
    assert reports.code == 2
    assert "no scheduler listens here" in reports.lines("error")[0]
