"""Log lines: klog's levels, and nothing that a name could make look like a line of its own."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from pumice.kube.scheduler import logs


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
    assert "left_out" not in entry
    assert json.loads(logs.JsonLines().format(record("pod", left_out=7)))["left_out"] == 7


def reports(sparing: logs.LogRateLimit, *records: logging.LogRecord) -> list[str]:
    lines = [logs.TextLines().format(each) for each in records if sparing.filter(each)]
    return [line.partition("kube: ")[2] for line in lines]


def test_equal_lines_are_counted_and_logged_once() -> None:
    at = [0.0]
    sparing = logs.LogRateLimit(at_once=2, clock=lambda: at[0])
    storm = [record("pod %s: not bound", name) for name in "abcde"]
    assert reports(sparing, *storm) == ["pod a: not bound", "pod b: not bound"]
    assert reports(sparing, record("something else"), record("cycle", fields={"bound": 1})) == [
        "something else",
        "cycle",
    ]
    at[0] = 1.0
    assert reports(sparing, record("pod %s: not bound", "f")) == ["pod f: not bound (and 3 others like it)"]
    at[0] = 9.0
    again = [record("pod %s: not bound", name) for name in "gh"]
    assert reports(sparing, *again) == ["pod g: not bound", "pod h: not bound"]


@pytest.mark.parametrize("verbosity", [2, 3])
def test_nothing_is_left_out_for_who_wants_to_know(root: logging.Logger, verbosity: int) -> None:
    stream = io.StringIO()
    logs.set_up(verbosity, as_json=True, stream=stream)
    for number in range(1000):
        logging.getLogger("pumice.kube").warning("pod %s: not bound", number)
    assert (stream.getvalue().count("not bound") == 1000) == (verbosity == 3)


def test_levels_are_bounded() -> None:
    assert logs.level_of(99) == logs.level_of(5) < logs.level_of(4) < logs.level_of(3) < logs.level_of(0)
