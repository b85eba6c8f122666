"""Cycles over time, in bounded memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.framework.cycle.trace import Fault
from pumice.web.history import CYCLES_KEPT, FAULTS_KEPT, PARTS, QUEUES_KEPT, SPANS_KEPT, CycleHistory, rounded
from pumice.web.sample import CycleSample
from tests.unit.web import worlds

SPANS = {"open session": 0.25, "allocate": 0.5, "plugin gang": 0.125}


@pytest.fixture(scope="module")
def sample() -> CycleSample:
    return worlds.sample(SPANS)


def filled(sample: CycleSample, moments: list[float], **given: float) -> CycleHistory:
    found = CycleHistory(**given)
    for number, at in enumerate(moments, 1):
        found.take(replace(sample, number=number, at=at))
    return found


def with_used(sample: CycleSample, cores: float) -> CycleSample:
    used = sample.amounts.used.copy()
    used[0] = cores
    return replace(sample, amounts=replace(sample.amounts, used=used))


def test_amounts_of_a_sample_are_those_of_a_summary(sample: CycleSample) -> None:
    summary, amounts = worlds.summary(), sample.amounts
    assert amounts.queues.names == summary.queues.names
    for name in ("used", "waiting", "deserved", "jobs"):
        assert np.array_equal(getattr(amounts.queues, name), getattr(summary.queues, name))
    assert np.allclose(amounts.offers, summary.nodes.offers.sum(axis=0))
    assert np.allclose(amounts.used, summary.nodes.used.sum(axis=0))
    assert amounts.waiting == 2


def test_a_part_without_a_cycle_is_as_the_one_before(sample: CycleSample) -> None:
    found = CycleHistory()
    found.take(replace(with_used(sample, 1.0), at=100.0))
    found.take(replace(with_used(sample, 3.0), at=103.5))
    assert found.curves("cpu")["cluster"]["used"] == [1, 1, 1, 3]
    assert found.times()["counts"]["cycles"] == [1, 0, 0, 1]
    assert found.start == 100.0


def test_pairs_become_one_when_all_parts_are_filled(sample: CycleSample) -> None:
    found = CycleHistory()
    for second in range(PARTS + 1):
        found.take(replace(with_used(sample, float(second % 2)), number=second, at=float(second)))
    assert (found.width_s, found.count) == (2.0, PARTS // 2 + 1)
    assert found.curves("cpu")["cluster"]["used"][:3] == [0.5, 0.5, 0.5]
    times = found.times()
    assert sum(times["counts"]["cycles"]) == PARTS + 1
    assert sum(times["spans"]["allocate"]) == pytest.approx(0.5 * (PARTS + 1))
    assert times["longest"][0] == 0.75, "a plugin is a part of opening, and not counted twice"


def test_the_oldest_part_goes_once_the_span_is_reached(sample: CycleSample) -> None:
    found = filled(sample, [float(second) for second in range(PARTS + 10)], span_max_s=PARTS)
    assert (found.width_s, found.start, found.count) == (1.0, 10.0, PARTS)
    assert found.times()["counts"]["cycles"] == [1.0] * PARTS


@pytest.mark.parametrize("span_max_s", [math.inf, PARTS])
def test_after_a_long_time_without_cycles_it_goes_on(sample: CycleSample, span_max_s: float) -> None:
    found = filled(sample, [0.0, 1e7, 1e7 + 1], span_max_s=span_max_s)
    assert 1 <= found.count <= PARTS
    assert found.start + found.count * found.width_s >= 1e7
    assert found.times()["counts"]["cycles"][-1] >= 1


def test_a_clock_that_was_put_back_changes_nothing_before(sample: CycleSample) -> None:
    found = filled(sample, [100.0, 105.0, 50.0])
    assert found.count == 6 and found.times()["counts"]["cycles"] == [1, 0, 0, 0, 0, 2]


def test_memory_does_not_grow(sample: CycleSample) -> None:
    found = CycleHistory()
    before = found.nbytes
    for number in range(600):
        fault = Fault("job", f"p{number}", "point", "hook", "here", "failed")
        spans = {f"action{number}": 1.0}
        queues = replace(sample.amounts.queues, names=[f"{number}-{i}" for i in range(3)])
        amounts = replace(sample.amounts, queues=queues)
        found.take(replace(sample, number=number, at=1e4 * number, faults=(fault,), spans=spans, amounts=amounts))
    times, curves = found.times(), found.curves("cpu")
    assert found.nbytes == before < 4 << 20
    assert len(times["cycles"]) == CYCLES_KEPT and len(times["faults"]) == FAULTS_KEPT
    assert len(times["spans"]) == SPANS_KEPT
    assert len(curves["queues"]) + curves["queues_left_out"] <= QUEUES_KEPT


def test_a_new_queue_gets_the_place_of_one_that_is_gone(sample: CycleSample) -> None:
    found = CycleHistory()
    for number in range(PARTS // 4):
        queues = replace(sample.amounts.queues, names=[f"{number}-{i}" for i in range(3)])
        found.take(replace(sample, at=float(number), amounts=replace(sample.amounts, queues=queues)))
    newest = f"{PARTS // 4 - 1}-0"
    curve = next(each for each in found.curves("cpu")["queues"] if each["name"] == newest)
    assert curve["used"][:-1] == [0] * (PARTS // 4 - 1), "nothing of the queue that had the place is left"


def test_equal_faults_are_counted(sample: CycleSample) -> None:
    fault = Fault("ns/a", "mine", "predicate", "check", "mine.py:3", "ValueError: x")
    found = filled(replace(sample, faults=(fault, fault), fault_count=2), [1.0, 2.0])
    (row,) = found.times()["faults"]
    assert (row["plugin"], row["count"], row["cycle"]) == ("mine", 4, 2)


def test_an_unknown_resource_has_no_curves(sample: CycleSample) -> None:
    assert filled(sample, [1.0, 2.0]).curves("nope")["queues"] == []


def test_values_are_rounded_to_four_digits() -> None:
    assert rounded([0.0, 0.1, 1 / 3, 12345.678, -2.5, 1e-7]) == [0.0, 0.1, 0.3333, 12350.0, -2.5, 1e-7]
