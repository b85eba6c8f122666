"""A simulation leaves out the cycles that would find nothing new: whenever it does, one is run all the same here."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest
import yaml

from pumice.sim import run as running
from pumice.sim.fuzz.case import draw, play
from pumice.sim.fuzz.sizes import SMALL
from pumice.sim.shell import Shell
from pumice.sim.world import Simulation
from pumice.volcano.table import volcano_registry

SEEDS = range(25)
#: The plugins that decide about admission by what was promised, which ends when a job runs.
ADMISSION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: %s}, {name: nodeorder}]
"""


class Doubting(Simulation):
    """Runs a second cycle at the same moment where none is asked for."""

    seen: ClassVar[Counter[str]] = Counter()

    def _cycle(self, now: float) -> None:
        super()._cycle(now)
        if self._again or self.cluster.has_news:
            return
        shell: Shell = self.cycle_fn.__self__  # type: ignore[attr-defined]
        before = shell.nearest()
        report = self.cycle_fn(now)
        assert (report.decisions, shell.nearest()) == ([], before)
        self.seen["quiet, somebody waits" if before else "quiet"] += 1


@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_a_cycle_that_nobody_asked_for_finds_nothing_new(monkeypatch: pytest.MonkeyPatch, sharing: str) -> None:
    monkeypatch.setattr(running, "Simulation", Doubting)
    Doubting.seen.clear()
    registry, conf = volcano_registry(), yaml.safe_load(ADMISSION % sharing)
    for seed in SEEDS:
        assert play(draw(seed, registry, [conf], {}, size=SMALL), registry).problem == ""
    assert Doubting.seen["quiet, somebody waits"] > 40
