"""Every mechanism that is listed is measured, and can be turned off alone."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from bench.mechanisms import answers
from bench.mechanisms.__main__ import Row, line
from bench.mechanisms.idle import one_cycle
from bench.mechanisms.moving import Moving, decide
from bench.mechanisms.switches import SWITCHES, off
from bench.mechanisms.workloads import WORKLOADS, Workload
from pumice.framework import memo
from pumice.framework.memo import Memo
from pumice.volcano.table import DEFAULT_CONF


def test_each_module_that_keeps_answers_has_a_switch() -> None:
    page = (memo.__doc__ or "").partition("These modules keep answers")[2].partition("Three mechanisms")[0]
    listed = set(re.findall(r"``([a-z_]+\.[a-z_.]+)``", page))
    places = {each for switch in SWITCHES.values() for each in (*switch.modules, *switch.plain)}
    switched = {each.partition(":")[0].removeprefix("pumice.") for each in places}
    assert len(listed) > 20
    assert listed <= switched, sorted(listed - switched)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_has_two_workloads_and_replaces_what_exists(name: str) -> None:
    switch = SWITCHES[name]
    assert len(switch.workloads) >= 2 and WORKLOADS.keys() >= set(switch.workloads)
    with off(switch):  # raises AttributeError for a function that does not exist
        for module in switch.modules:
            assert module == "pumice." or import_module(module)


def asked_by(module: str, memo: Memo) -> Any:
    """Ask the memo twice from a module of this name, and return the second answer."""
    asked: dict[str, Any] = {"__name__": module, "memo": memo, "np": np}
    exec("memo.get('a', (), lambda: 1); found = memo.get('a', (), lambda: 2)", asked)
    return asked["found"]


def test_only_the_modules_of_a_switch_get_nothing_back() -> None:
    with off(SWITCHES["drf"]):
        assert asked_by("pumice.volcano.plugins.drf", Memo()) == 2
        assert asked_by("pumice.volcano.plugins.proportion", Memo()) == 1
    assert asked_by("pumice.volcano.plugins.drf", Memo()) == 1


@pytest.mark.parametrize(
    ("calls", "cpu_s", "pays"),
    [((100, 102), (1.0, 1.0), True), ((100, 100), (1.0, 1.2), True), ((100, 100), (1.0, 1.0), False)],
)
def test_a_mechanism_pays_by_calls_or_by_cpu(calls: tuple[int, int], cpu_s: tuple[float, float], pays: bool) -> None:
    assert Row("", calls, cpu_s).pays is pays


def test_a_mechanism_has_one_line() -> None:
    rows = [Row("gang", (1000, 2400), (1.0, 1.5)), Row("topo", (9000, 9000), (0.123, 0.1))]
    assert line("drf", rows) == (
        "| `drf` | what `drf` computes of the cluster | gang: 1 → 2, topo: 9 → 9 | 1 → 1.5, 0.123 → 0.1 |"
    )


def sums_of_a_cycle(monkeypatch: pytest.MonkeyPatch, without: str = "") -> int:
    """Return how often a cycle in which nothing changes, while jobs wait, builds an answer or sums an array up."""
    built: list[object] = []
    get = Memo.get

    def counting(memo: Memo, question: Any, rests_on: Any, build: Any, size: int = 0) -> Any:
        return get(memo, question, rests_on, lambda: (built.append(question), build())[1], size)

    monkeypatch.setattr(Memo, "get", counting)
    sums = import_module("pumice.volcano.queues.amounts")
    by = sums.sums_by
    monkeypatch.setattr(sums, "sums_by", lambda *arguments: (built.append("sums"), by(*arguments))[1])
    with off(SWITCHES.get(without)):
        cycle = one_cycle(6, 4)
        built.clear()
        cycle()
    return len(built)


def test_a_cycle_sums_nothing_up_if_nothing_changes_while_jobs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sums_of_a_cycle(monkeypatch) == 0


def test_without_the_sums_it_looks_at_all_jobs_and_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sums_of_a_cycle(monkeypatch, "sums") > 0


@pytest.mark.parametrize("name", ["memo", "sums", "overcommit", "drf"])
def test_a_moving_cluster_decides_the_same_without_a_mechanism(name: str) -> None:
    plan = Moving(nodes=8, queues=3, waiting=6, cycles=4)
    expected = decide(plan, DEFAULT_CONF)
    with off(SWITCHES[name]):
        assert decide(plan, DEFAULT_CONF) == expected
    assert expected != decide(Moving(nodes=6, queues=3, waiting=6, cycles=4), DEFAULT_CONF)


def test_what_an_answer_saves_is_named_by_its_module(capsys: pytest.CaptureFixture[str]) -> None:
    with patch.dict(WORKLOADS, {"tiny": Workload(conf=DEFAULT_CONF, moving=Moving(4, 2, 4, cycles=3))}):
        assert answers.main(["tiny"]) == 0
    assert re.search(r"% framework.plugin.hooks: wiring$", capsys.readouterr().out, re.MULTILINE)
    assert answers.main(["tiny"]) == 2
