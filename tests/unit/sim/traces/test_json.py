"""A JSON file of a trace: what is read of it, and what is said of one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.sim.traces.tables import read_json
from pumice.sim.traces.trace import TraceError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"[" + b" " * (1 << 20) + b"]", ": more than 1 MiB", id="too large"),
        pytest.param(b"[1,", ": not JSON: ", id="cut"),
        pytest.param(b"[" * 200_000, ": not JSON: ", id="too deep"),
        pytest.param(None, ": No such file or directory", id="none"),
    ],
)
def test_what_cannot_be_read_is_said_once(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "trace.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TraceError) as error:
        read_json(file, 1 << 20)
    assert str(error.value).startswith(f"{file}{said}")


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(b"[1]" + b" " * ((1 << 20) - 3))
    assert read_json(file, 1 << 20) == [1]
