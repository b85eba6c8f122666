"""What a record costs is measured around the recorder's calls in the loop of the product."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import records
from pumice.runtime.record.recorder import Recorder

DEMO = str(Path(__file__).parents[3] / "examples" / "demo")


def test_the_recorder_is_measured_in_a_simulation_and_its_cycles_decide_the_same_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in records._CALLS:  # put back when the test has ended
        monkeypatch.setattr(Recorder, name, getattr(Recorder, name))
    meter = records.Meter(None)
    meter.install()
    whole = records.simulate([DEMO, "--record", str(tmp_path / "record"), "--json"])
    assert 0 < meter.seconds < whole
    assert meter.recorder[0].events > 0
    found, equal = records.equal_again(tmp_path / "record", 5)
    assert found == equal == 5
