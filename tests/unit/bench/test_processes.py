"""A measured process: the kernel's account, the answer, and what is said when there is none."""

from __future__ import annotations

import json
import resource
import sys

import pytest

from bench.figures import CYCLE_CPU, NEXT, PEAK, PROCESS_CPU, QUIET, WALL
from bench.processes import RunError, run


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_values_come_from_the_answer_and_from_the_kernel() -> None:
    answer = {"cpu_s": 0.25, "next_cycle_ms": 7, "second_cycle_ms": 3, "digest": "abc", "bound": 4}
    found = run(python(f"held = bytearray(64 << 20); print({json.dumps(answer)!r})"), {"bound": 4}, seed=0)
    assert (found.values[CYCLE_CPU], found.values[NEXT], found.values[QUIET]) == (0.25, 7.0, 3.0)
    assert found.digest == "abc"
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # the kernel counts what was held before exec
    assert 64 < found.values[PEAK] < 640 + own, "the 64 MB that the process held are in it; Units: MB"
    assert found.values[PROCESS_CPU] > 0
    assert found.values[WALL] > 0


def test_an_answer_without_a_cycle_has_no_cycle_figures() -> None:
    assert {CYCLE_CPU, NEXT, QUIET}.isdisjoint(run(python("print('{}')"), {}, seed=0).values)


def test_the_seed_is_that_of_the_hashes() -> None:
    code = "import json, os; print(json.dumps({'digest': os.environ['PYTHONHASHSEED']}))"
    assert [run(python(code), {}, seed=seed).digest for seed in (0, 7)] == ["0", "7"]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        pytest.param("raise SystemExit('no such trace')", "exit code 1.*no such trace", id="failed"),
        pytest.param("print('{\"bound\": 3}')", "bound: found 3, wanted 4", id="not all bound"),
        pytest.param("print('{}')", "bound: found None, wanted 4", id="not said"),
        pytest.param("print('done')", "not a JSON object", id="no JSON"),
        pytest.param("print('[]')", "not a JSON object", id="no object"),
    ],
)
def test_a_run_that_did_not_do_the_work_is_no_figure(code: str, complaint: str) -> None:
    with pytest.raises(RunError, match=f"(?s){complaint}"):
        run(python(code), {"bound": 4}, seed=0)


def test_a_run_that_takes_too_long_is_ended() -> None:
    with pytest.raises(RunError, match="not done within 1 CPU seconds"):
        run(python("while True: pass"), {}, seed=0, within=1.0)
