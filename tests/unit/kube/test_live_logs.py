"""Log lines: Volcano's words at klog's levels, and nothing that a name could make look like a line of its own."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from pumice.cycle import run_cycle
from pumice.kube import logs
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, podgroup, pods, policy


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The loggers as they were, afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("pumice")
    before = list(root.handlers), root.level, ours.level
    yield root
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def record(message: str, *args: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("pumice.kube", logging.WARNING, "f", 1, message, args, None)
    made.__dict__.update(more)
    return made


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a\n2026-01-01 I run: all is well", "a\\x0a2026-01-01 I run: all is well", id="line"),
        pytest.param("a\x1b[2J", "a\\x1b[2J", id="terminal"),
        pytest.param("a\u2028b\u202eb", "a\\u2028b\\u202eb", id="separator and direction"),
        pytest.param("a\U000e0001", "a\\U000e0001", id="tag"),
        pytest.param("naïve 日本", "naïve 日本", id="other scripts"),
    ],
)
def test_text_is_one_line(name: str, shown: str) -> None:
    line = logs.TextLines().format(record("pod %s", name))
    assert line.endswith(f" W kube: pod {shown}")


def test_a_traceback_is_set_in() -> None:
    try:
        raise ValueError("no\x1b\nno")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    lines = logs.TextLines().format(record("fault", exc_info=info)).split("\n")
    assert len(lines) > 2
    assert all(line.startswith("    ") and line.isprintable() for line in lines[1:])


def test_json_is_one_object_a_line() -> None:
    line = logs.JsonLines().format(record("pod %s", 'a"\n', fields={"bound": 3}))
    assert "\n" not in line
    entry = json.loads(line)
    assert (entry["message"], entry["level"], entry["v"], entry["bound"]) == ('pod a"\n', "warning", 0, 3)


LINES = {
    3: [
        "Open Session",
        "Try to enqueue PodGroup to 1 Queues",
        "Try to allocate resource to 1 Queues",
        "There are <1> nodes for Job <ns/a>",
        "Committing operations ... Job <ns/a>: 1 tasks",
        "Discarding operations ... Job <ns/b>",
        "Binding Task <ns/a-0> to node <n>",
        "Close Session",
    ],
    4: ["Start scheduling ...", "End scheduling ...", "Job <ns/b> waits: "],
    5: ["Enter Allocate ...", "Leaving Allocate ..."],
}


@pytest.mark.parametrize("verbosity", [2, 3, 4, 5])
def test_a_cycle_is_told_at_its_level(root: logging.Logger, verbosity: int) -> None:
    store = cluster(node("n", cpu=2), podgroup("a", 1), pods("a", 1, cpu=1), podgroup("b", 9), pods("b", 9, cpu=1))
    planner = ListPlanner()
    outcome = run_cycle(store.snapshot(), policy(), 1.0, planner)
    stream = io.StringIO()
    logs.set_up(verbosity, as_json=False, stream=stream)
    logs.tell_cycle(outcome, planner.taken)
    said = stream.getvalue()
    for level, lines in LINES.items():
        for line in lines:
            assert (line in said) == (level <= verbosity), (level, line, said)


def test_levels_are_bounded() -> None:
    assert logs.level_of(99) == logs.level_of(5) < logs.level_of(4) < logs.level_of(3) < logs.level_of(0)
