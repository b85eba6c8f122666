from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

import pytest

from pumice.runtime import memory
from pumice.runtime.memory import (
    give_back_freed,
    leave_old_objects_alone,
    old_objects_left_alone,
    seldom_collected,
)

PAGE_BYTES = 4096


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


@pytest.fixture
def threshold(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, int]]:
    """The threshold at the start of a process, with nothing frozen; afterwards both are as for other tests."""
    found = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
    monkeypatch.setattr(memory._Frozen, "now", False)
    yield gc.get_threshold()
    gc.set_threshold(*found)
    gc.freeze()


def test_the_collector_is_as_it_was_after_the_block(threshold: tuple[int, int, int]) -> None:
    with old_objects_left_alone():
        assert gc.get_threshold()[0] > threshold[0]
        assert gc.get_freeze_count()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (threshold, 0)


def test_a_block_within_leaves_the_freezing_to_the_one_around_it(threshold: tuple[int, int, int]) -> None:
    with old_objects_left_alone():
        frozen = gc.get_freeze_count()
        with old_objects_left_alone():
            assert gc.get_freeze_count() == frozen
        assert gc.get_freeze_count() == frozen
    assert (gc.get_threshold(), gc.get_freeze_count()) == (threshold, 0)


def test_what_is_unused_is_freed_where_that_is_asked_for(threshold: tuple[int, int, int]) -> None:
    class Circle:
        def __init__(self) -> None:
            self.itself = self

    circle = Circle()
    leave_old_objects_alone()
    left = ref(circle)
    del circle
    leave_old_objects_alone()
    assert left() is not None
    leave_old_objects_alone(and_free_unused=True)
    assert left() is None


def test_a_command_has_the_collector_look_less_often_until_it_ends(threshold: tuple[int, int, int]) -> None:
    with seldom_collected():
        assert gc.isenabled()
        assert gc.get_threshold()[0] > threshold[0]
    assert gc.get_threshold() == threshold


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no way to give memory back")
def test_what_is_freed_below_something_that_stays_is_given_back() -> None:
    blocks = [bytes(2_000) for _ in range(50_000)]
    stays = bytes(2_000)
    del blocks
    before = resident_bytes()
    if not give_back_freed():
        pytest.skip("this C library keeps nothing, or has no way to give it back")
    assert resident_bytes() < before - 50_000_000
    assert len(stays) == 2_000


FAULTS = """
import resource, numpy as np
from pumice.runtime.memory import keep_buffers
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
kept = keep_buffers()
def work(): return [np.ones(12_500) for _ in range(10)]
work()
before = faults()
for _ in range(100): work()
print(int(kept), faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems' C libraries are not asked")
def test_buffers_that_were_freed_serve_the_next_ones() -> None:
    """In a process of its own: what the C library does of itself depends on what was freed before."""
    kept, faults = subprocess.check_output([sys.executable, "-c", FAULTS], text=True).split()
    if kept == "0":
        pytest.skip("this C library cannot be told")
    assert int(faults) < 256, "ten buffers of 100 kB are 250 pages, and were made a hundred times"
