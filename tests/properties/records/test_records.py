"""Records of random worlds, with things that go wrong: each cycle decides the same when it is run again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pumice.framework.plugin.policy_file import read_policy
from pumice.model.manifest import Decoder
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.record.reading import Begin, End, Step, read_record
from pumice.runtime.record.recorder import Bounds, Recorder, files_of
from pumice.runtime.record.replay import ReplayedCycle, replay
from pumice.sim.faults import FaultPlan
from pumice.sim.fuzz.case import draw
from pumice.sim.fuzz.sizes import SMALL
from pumice.sim.run import simulate
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.settings import Observers, SimSettings

REGISTRY = builtin_registry()
#: Small, so that a record has several files, none of which may need one before it.
BOUNDS = Bounds(size_max=32 << 10, age_max_s=1e9)
each_language = pytest.mark.parametrize("language", ["volcano", "kai"])


def record(seed: int, language: str, folder: Path, bounds: Bounds) -> int:
    """Record one world, and return of how many cycles."""
    case = draw(seed, REGISTRY, dialect=language, size=SMALL)
    policy = read_policy(case.conf, REGISTRY)
    plan = FaultPlan(600.0, **case.faults) if case.faults else None
    recorder = Recorder(folder, bounds)
    recorder.use_conf(yaml.safe_dump(case.conf, sort_keys=False))
    decoder = Decoder()
    scene = scene_of(decoder.decode(raw) for raw in case.objects)
    settings = SimSettings(until=1200.0, seed=case.seed, faults=plan, try_alone=False, circles_max=50)
    run = simulate(scene, policy, settings, Observers(recorder=recorder))
    recorder.close()
    return run.result.cycles


def cycles_that_differ(seed: int, language: str, folder: Path) -> list[str]:
    """Record one world, and return what is different when it is run again."""
    cycles = record(seed, language, folder, BOUNDS)
    found, last = list[str](), 0
    for each in replay(folder, lambda text, _: loaded_from_text(text, REGISTRY, where="record").policy):
        if isinstance(each, End):
            found.append(each.why)
        elif isinstance(each, ReplayedCycle):
            last = each.number
            if not each.is_equal:
                found.append(f"seed {seed}: cycle {each.number} of {each.snapshot.number}")
    if last != cycles:
        found.append(f"seed {seed}: {cycles} cycles, the record ends at {last}")
    return found


def read(folder: Path) -> tuple[dict[Path, list[str]], list[End]]:
    """Return the steps of each file of a record, as texts, and where files end that are not whole."""
    steps, ends, path = dict[Path, list[str]](), list[End](), folder
    for entry in read_record(folder):
        match entry:
            case Begin():
                path = entry.path
                steps[path] = []
            case Step():
                steps[path].append(repr(entry))
            case End():
                ends.append(entry)
    return steps, ends


def cut(content: bytes, at: int, dice: random.Random) -> bytes:
    return content[:at]


def with_a_bit_changed(content: bytes, at: int, dice: random.Random) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :]


def with_bytes_lost(content: bytes, at: int, dice: random.Random) -> bytes:
    return content[:at] + content[at + dice.randint(1, 400) :]


def with_zeros(content: bytes, at: int, dice: random.Random) -> bytes:
    """What a file system may leave of a block after a crash."""
    lost = min(dice.randint(1, 400), len(content) - at)
    return content[:at] + bytes(lost) + content[at + lost :]


@each_language
@pytest.mark.parametrize("damage", [cut, with_a_bit_changed, with_bytes_lost, with_zeros])
def test_a_record_damaged_anywhere_gives_what_is_whole_before_and_says_where_it_ends(
    language: str, damage: Callable[[bytes, int, random.Random], bytes], tmp_path: Path
) -> None:
    """80 places in one of several files: the steps of that file are those of the file cut there, and the other files
    are as they were."""
    record(3, language, tmp_path, Bounds(size_max=8 << 10, age_max_s=1e9, frame_cycles=2))
    whole, none = read(tmp_path)
    paths, dice = files_of(tmp_path), random.Random(0)
    assert none == [] and len(paths) > 1
    for _ in range(80):
        path = dice.choice(paths)
        content = path.read_bytes()
        at = dice.randrange(len(content))
        path.write_bytes(content[:at])
        before, _ = read(tmp_path)
        damaged = damage(content, at, dice)
        path.write_bytes(damaged)
        after, ends = read(tmp_path)
        path.write_bytes(content)
        if damaged == content:  # zeros for zeros
            assert after == whole and ends == []
            continue
        assert after.get(path, []) == before.get(path, []) == whole[path][: len(after.get(path, []))], at
        assert {key: steps for key, steps in after.items() if key != path} == {
            key: steps for key, steps in whole.items() if key != path
        }
        # The end of a whole frame is no damage that can be seen, but then the next file says what is missing.
        if path != paths[-1] or damage is not cut:
            assert any(path.name in end.why for end in ends) or "are missing before" in ends[0].why, at


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
