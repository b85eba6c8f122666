"""A record: what a loop was given is run again, and decides the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import copytree

import pytest
from msgspec.structs import replace

from pumice.cli.answers.recording import recorded_policy
from pumice.framework.cycle.ports import OutsideError
from pumice.model.events import Gone, News, PodsGone, PodsSeen, Seen, Undone
from pumice.runtime.loop import Loop
from pumice.runtime.policy.conf import loaded_from_file, loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.record.events import EventError, EventReader, EventWriter
from pumice.runtime.record.form import encode
from pumice.runtime.record.frames import MAGIC, FrameError, FrameWriter, frames_of
from pumice.runtime.record.reading import End, RecordError, read_record
from pumice.runtime.record.recorder import Bounds, Recorder, files_of
from pumice.runtime.record.replay import PolicyOf, ReplayedCycle, cycle_at, newest, replay
from pumice.runtime.record.story import JobChange, story
from pumice.sim.faults import FaultPlan
from pumice.sim.run import Run, simulate
from pumice.sim.scenes.inputs import read_inputs
from pumice.sim.settings import Observers, SimSettings
from pumice.testing.build import cluster, node, pod, podgroup, queue
from pumice.volcano.table import DEFAULT_CONF
from tests.unit.runtime.test_loop import Vanishing

EXAMPLES = Path(__file__).parents[4] / "examples"


HOUR = 3600.0


#: Frames of few cycles, so that a record of an hour has many.
SMALL = Bounds(frame_cycles=2)


def recorded(folder: Path, example: str, bounds: Bounds = SMALL, faults: FaultPlan | None = None) -> Run:
    found = read_inputs((str(EXAMPLES / example),))
    conf = EXAMPLES / "kai/kai.conf" if example == "kai" else found.confs[0]
    loaded = loaded_from_file(conf, builtin_registry(), strict=True)
    recorder = Recorder(folder, bounds)
    recorder.use_conf(loaded.text)
    settings = SimSettings(start=found.newest, until=HOUR, seed=3, try_alone=False, faults=faults)
    run = simulate(found.scene, loaded.policy, settings, Observers(recorder=recorder))
    recorder.close()
    return run


@pytest.fixture(scope="module")
def demo_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    recorded(folder, "demo")
    return folder


@pytest.fixture
def demo(demo_record: Path, tmp_path: Path) -> Path:
    """A record of its own for each test, in one file."""
    copytree(demo_record, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("1000000.record", "999999.record", "x.record"):
        (tmp_path / name).touch()
    assert [path.name for path in files_of(tmp_path)] == ["999999.record", "1000000.record"]


def test_a_file_that_was_deleted_meanwhile_is_named(demo: Path) -> None:
    place = newest(demo, lambda cycle: cycle.number == 1)
    assert place is not None
    place.path.rename(demo / "000009.record")
    with pytest.raises(RecordError, match="was deleted meanwhile"):
        cycle_at(demo, place, policy_of())


def policy_of() -> PolicyOf:
    return recorded_policy("")


def cycles_of(folder: Path) -> tuple[list[ReplayedCycle], list[End]]:
    found = list(replay(folder, policy_of()))
    cycles = [each for each in found if isinstance(each, ReplayedCycle)]
    return cycles, [each for each in found if isinstance(each, End)]


@pytest.mark.parametrize("example", ["demo", "kai", "defragment"])
def test_every_cycle_of_a_record_decides_the_same_again(example: str, tmp_path: Path) -> None:
    run = recorded(tmp_path, example)
    cycles, ends = cycles_of(tmp_path)
    assert not ends and len(cycles) == run.result.cycles
    assert any(cycle.decisions for cycle in cycles)
    assert [cycle.number for cycle in cycles if not cycle.is_equal] == []


def test_refusals_restarts_and_lost_nodes_are_replayed_too(tmp_path: Path) -> None:
    faults = FaultPlan(HOUR, refused_share=0.2, restart_every_s=600.0, node_gone_every_s=900.0)
    run = recorded(tmp_path, "demo", faults=faults)
    cycles, ends = cycles_of(tmp_path)
    assert run.faults.get("refused") and len(run.faults) >= 3, run.faults
    assert not ends and [cycle.number for cycle in cycles if not cycle.is_equal] == []
    assert len(cycles) == run.result.cycles


def test_files_that_begin_later_need_none_before_them(tmp_path: Path) -> None:
    recorded(tmp_path, "demo", replace(SMALL, size_max=8 << 10))
    paths = files_of(tmp_path)
    cycles, _ = cycles_of(tmp_path)
    assert len(paths) > 1 and sum(path.stat().st_size for path in paths) < (8 << 10) + 2 * paths[-1].stat().st_size
    assert cycles[0].number > 1 and all(cycle.is_equal for cycle in cycles)  # the oldest were deleted


def test_a_record_is_bounded_by_age(tmp_path: Path) -> None:
    run = recorded(tmp_path, "demo", replace(SMALL, age_max_s=900.0))
    cycles, _ = cycles_of(tmp_path)
    assert cycles[0].now > run.result.now - 2 * 900.0 and all(cycle.is_equal for cycle in cycles)


@pytest.mark.parametrize("left_out", [1, 3000])
def test_a_record_that_was_cut_gives_what_is_whole(left_out: int, demo: Path) -> None:
    [path] = files_of(demo)
    whole, _ = cycles_of(demo)
    path.write_bytes(path.read_bytes()[:-left_out])
    cycles, [end] = cycles_of(demo)
    assert "ends within frame" in end.why and 0 < len(cycles) < len(whole)
    assert [cycle.digest for cycle in cycles] == [cycle.digest for cycle in whole[: len(cycles)]]


def test_a_killed_process_loses_at_most_the_frame_that_is_open(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Bounds(frame_cycles=4))
    loop = Loop(cluster(), loaded_from_text(DEFAULT_CONF, builtin_registry(), where="default").policy, Vanishing())
    recorder.use_conf(DEFAULT_CONF)
    loop.recorder = recorder
    for number in range(1, 7):
        loop.step(float(number))
    assert [cycle.number for cycle in cycles_of(tmp_path)[0]] == [
        1,
        2,
        3,
        4,
    ]  # the file as it is now: nothing is closed
    recorder.flush()
    assert [cycle.number for cycle in cycles_of(tmp_path)[0]] == [1, 2, 3, 4, 5, 6]
    recorder.close()


def test_cycles_that_are_missing_between_files_are_named(tmp_path: Path) -> None:
    recorded(tmp_path, "demo", replace(SMALL, size_max=32 << 10))
    _, second, *_ = files_of(tmp_path)
    second.unlink()
    _, [end] = cycles_of(tmp_path)
    assert "are missing" in end.why


def test_a_record_that_was_changed_ends_there(demo: Path) -> None:
    [path] = files_of(demo)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    cycles, [end] = cycles_of(demo)
    assert cycles and "checksum does not match" in end.why


def test_a_folder_without_a_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="found no file of a record"):
        list(read_record(tmp_path))


def test_one_cycle_is_found_and_run(demo: Path) -> None:
    place = newest(demo, lambda cycle: cycle.number == 2)
    assert place is not None
    found = cycle_at(demo, place, policy_of())
    assert found.number == 2 and found.is_equal and found.decisions
    assert newest(demo, lambda cycle: cycle.number == 10_000) is None


def test_a_story_has_every_change_of_code_and_every_decision(demo: Path) -> None:
    moments = list(story(replay(demo, policy_of()), "demo/llama-pretrain"))
    assert [(each.state, each.bound) for each in moments if isinstance(each, JobChange)] == [
        ("has no node", 0),
        ("holds nodes", 4),
    ]


def test_a_file_is_for_its_owner_alone_and_no_secret_is_in_it(tmp_path: Path) -> None:
    whole = {"kubectl.kubernetes.io/last-applied-configuration": "PASSWORD=hunter2"}
    writer = EventWriter()
    assert b"hunter2" not in encode(writer.write(Seen(pod("ml/a", annotations=whole))))
    recorded(tmp_path, "defragment")
    assert all(path.stat().st_mode & 0o077 == 0 for path in files_of(tmp_path))


def test_a_folder_that_cannot_be_written_ends_the_record_and_not_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path / "gone", failed=said.append)
    (tmp_path / "gone").rmdir()
    found = read_inputs((str(EXAMPLES / "defragment"),))
    policy = loaded_from_file(found.confs[0], builtin_registry(), strict=True).policy
    run = simulate(found.scene, policy, SimSettings(start=found.newest), Observers(recorder=recorder))
    assert run.result.cycles and len(said) == 1 and "the record ends" in said[0]


# -- events


def read_again(*frames: list[News]) -> list[News]:
    writer, reader, found = EventWriter(), EventReader(), list[News]()
    for news in frames:
        events = [event for each in news for event in writer.write(each)]
        reader.add_values(writer.take_values())
        found += reader.read(events)
    return found


def test_events_are_read_as_they_were_written() -> None:
    one, two = pod("ml/a", labels={"x": "1"}), pod("ml/b")
    given: list[News] = [
        Seen(node("n0")),
        Seen(queue("q")),
        Seen(podgroup("ml/g", 2)),
        PodsSeen({one.key: one, two.key: two}),
        Undone("ml/a", "uid"),
        PodsGone(("ml/a", "ml/b")),
        Gone(type(node("n0")), "n0"),
    ]
    assert read_again(given) == given
    assert read_again(*([each] for each in given)) == [*given[:3], PodsSeen({one.key: one, two.key: two}), *given[4:]]


def test_an_object_that_changes_is_written_as_what_changed() -> None:
    writer, before = EventWriter(), pod("ml/a")
    writer.write(Seen(before))
    [[_, key, changes]] = writer.write(Seen(replace(before, node_name="n1")))
    assert key == before.key and changes == {"node_name": "n1"}
    assert read_again([Seen(before)], [Seen(replace(before, node_name="n1"))])[1] == PodsSeen(
        {before.key: replace(before, node_name="n1")}
    )


@pytest.mark.parametrize(
    "event",
    [
        [99, "ml/a", {}],
        [0, "ml/a", {"no-such-field": 1}],
        [0, "ml/a", {"spec": 7}],
        [0, "ml/a", {}],
        [0, "ml/a", {"namespace": "ml", "name": 5}],
        ["x"],
        [],
    ],
)
def test_what_is_no_event_is_an_error(event: list[object]) -> None:
    with pytest.raises(EventError):
        EventReader().read([event])


def test_frames_are_read_in_order() -> None:
    writer = FrameWriter()
    texts = [b"one", b"", b"two" * 1000]
    assert list(frames_of(MAGIC + b"".join(map(writer.frame, texts)))) == texts
    with pytest.raises(FrameError, match="does not begin"):
        list(frames_of(b"PK"))


def test_answers_of_programs_are_noted_in_order(tmp_path: Path) -> None:
    class Program:
        def ask(self, url: str, question: Mapping[str, object], within_s: float) -> Mapping[str, object]:
            if url == "down":
                raise OutsideError("no answer in time")
            return {"url": url}

    recorder = Recorder(tmp_path)
    port = recorder.noting(Program())
    assert port.ask("up", {}, 1.0) == {"url": "up"}
    with pytest.raises(OutsideError):
        port.ask("down", {}, 1.0)
    assert recorder._answers == [(True, {"url": "up"}), (False, "no answer in time")]
