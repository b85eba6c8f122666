"""A snapshot in which numbers or texts were edited, and which was sealed anew, is refused or decides within bounds."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.runtime.files.sealed_archive import pack
from pumice.runtime.files.snapshot_file import KIND, Cycle, SnapshotError, from_bytes
from pumice.testing.build import cluster
from pumice.testing.clusters import small_cluster
from pumice.testing.kai_clusters import NEAR
from tests.properties.test_nodes_gone import LANGUAGES, NOW
from tests.unit.runtime.saved import Members, array, members
from tests.unit.runtime.saved import to_bytes as saved

WORLDS = 60
CYCLE_S_MAX = 20.0  # an honest cycle takes milliseconds
NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, -5.0, 1e18, 0.5, 5e-324)
VALUES = (0, -1, -7, 2**53, 2**62, 1e300, 1e-300, "", "x/y", "\n", None, True)


def edited(dice: Random, held: Members) -> Members:
    """Edit one to three values: numbers of columns, or values of objects or of the head."""
    for _ in range(dice.randint(1, 3)):
        held = _another_number(dice, held) if dice.random() < 0.6 else _another_value(dice, held)
    return held


def _another_number(dice: Random, held: Members) -> Members:
    def change(values: Any) -> Any:
        flat, kind = values.reshape(-1), values.dtype.kind
        limits = None if kind in "fb" else np.iinfo(values.dtype)
        found = NUMBERS if kind == "f" else (True, False) if limits is None else (limits.min, limits.max, -2, -1, 0, 7)
        if flat.size:
            flat[dice.randrange(flat.size) if dice.random() < 0.5 else slice(None)] = dice.choice(found)
        return values

    return array(dice.choice([name for name in held if name.endswith(".npy")]), change)(held)


def _another_value(dice: Random, held: Members) -> Members:
    name = dice.choice(("objects.json", "objects.json", "snapshot.json"))
    text = json.loads(held[name])
    places = list(_leaves(text))
    owner, key = dice.choice(places)
    equal = [value for value in VALUES if type(value) is type(owner[key])]
    owner[key] = dice.choice(equal if equal and dice.random() < 0.6 else VALUES)
    return held | {name: json.dumps(text).encode()}


def _leaves(owner: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in owner.items() if isinstance(owner, dict) else enumerate(owner):
        if isinstance(value, dict | list):
            yield from _leaves(value)
        else:
            yield owner, key


@contextmanager
def time_limit() -> Iterator[None]:
    """Fail if the block takes longer than ``CYCLE_S_MAX``."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it takes longer than {CYCLE_S_MAX:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, CYCLE_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_an_edited_snapshot_is_refused_or_ends(language: str, tmp_path: Path) -> None:
    conf, alter = LANGUAGES[language]
    refused, problems = 0, {}
    for seed in range(WORLDS):
        dice = Random(f"edited {language} {seed}")
        store = cluster(*small_cluster(dice, alter=alter), NEAR)
        content = pack(KIND, edited(dice, members(saved(Cycle(store.snapshot(), NOW, conf)))))
        path = tmp_path / "cycle"
        path.write_bytes(content)
        with time_limit():
            ran = CliRunner().invoke(main, ["schedule", str(path), "--json"], env={"PUMICE_DEBUG": "1"})
        ended = isinstance(ran.exception, SystemExit | None) and ran.exit_code in (0, 2)
        if not ended or "Traceback" in ran.output:
            problems[seed] = repr(ran.exception) if not ended else ran.output[:500]
        refused += ran.exit_code == 2
    assert problems == {}
    assert WORLDS / 4 < refused < WORLDS, "some are refused, some decide"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e300])
@pytest.mark.parametrize("column", ["queues/weight", "jobs/allocated", "nodes/books", "classes/req"])
def test_a_number_that_is_no_amount_is_named(column: str, number: float) -> None:
    store = cluster(*small_cluster(Random(1)))

    def change(values: Any) -> Any:
        values.reshape(-1)[0] = number
        return values

    content = pack(KIND, array(f"{column}.npy", change)(members(saved(Cycle(store.snapshot(), NOW, "")))))
    with pytest.raises(SnapshotError, match=f"is inconsistent: {column.replace('/', '.')}: row 0 is not"):
        from_bytes(content)
