"""Records of random worlds, with things that go wrong: each cycle decides the same when it is run again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pumice.framework.plugin.policy_file import read_policy
from pumice.model.manifest import Decoder
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.record.reading import End
from pumice.runtime.record.recorder import Bounds, Recorder
from pumice.runtime.record.replay import ReplayedCycle, replay
from pumice.sim.faults import FaultPlan
from pumice.sim.fuzz.case import draw
from pumice.sim.run import simulate
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.settings import Observers, SimSettings

REGISTRY = builtin_registry()
#: Small, so that a record has several files, none of which may need one before it.
BOUNDS = Bounds(size_max=32 << 10, age_max_s=1e9)
each_language = pytest.mark.parametrize("language", ["volcano", "kai"])


def cycles_that_differ(seed: int, language: str, folder: Path) -> list[str]:
    """Record one world, and return what is different when it is run again."""
    case = draw(seed, REGISTRY, dialect=language)
    policy = read_policy(case.conf, REGISTRY)
    plan = FaultPlan(600.0, **case.faults) if case.faults else None
    recorder = Recorder(folder, BOUNDS)
    recorder.use_conf(yaml.safe_dump(case.conf, sort_keys=False))
    decoder = Decoder()
    scene = scene_of(decoder.decode(raw) for raw in case.objects)
    settings = SimSettings(until=1200.0, seed=case.seed, faults=plan, try_alone=False, circles_max=50)
    run = simulate(scene, policy, settings, Observers(recorder=recorder))
    recorder.close()
    found, last = list[str](), 0
    for each in replay(folder, lambda text, _: loaded_from_text(text, REGISTRY, where="record").policy):
        if isinstance(each, End):
            found.append(each.why)
        elif isinstance(each, ReplayedCycle):
            last = each.number
            if not each.is_equal:
                found.append(f"seed {seed}: cycle {each.number} of {each.snapshot.number}")
    if last != run.result.cycles:
        found.append(f"seed {seed}: {run.result.cycles} cycles, the record ends at {last}")
    return found


@each_language
@pytest.mark.parametrize("seed", range(6))
def test_recorded_cycles_decide_the_same_again(language: str, seed: int, tmp_path: Path) -> None:
    assert cycles_that_differ(seed, language, tmp_path) == []


@pytest.mark.long
@each_language
@pytest.mark.parametrize("part", range(20))
def test_recorded_cycles_of_many_worlds_decide_the_same_again(language: str, part: int, tmp_path: Path) -> None:
    seeds = range(1000 + 50 * part, 1050 + 50 * part)
    assert [each for seed in seeds for each in cycles_that_differ(seed, language, tmp_path / str(seed))] == []
