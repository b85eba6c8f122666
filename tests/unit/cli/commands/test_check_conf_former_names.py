"""``pumice check-conf`` lists an argument once, and says which name is a former one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.kit import run


@pytest.mark.parametrize(
    ("arguments", "shown", "hidden"),
    [
        pytest.param("{}", ["finishPartialGangs = True"], ["halves"], id="neither"),
        pytest.param(
            "{halvesFirst: false}",
            ["halvesFirst = False (now called finishPartialGangs)"],
            ["finishPartialGangs = "],
            id="the former",
        ),
        pytest.param(
            "{halvesFirst: true, finishPartialGangs: false}",
            ["finishPartialGangs = False", "halvesFirst = True (now called finishPartialGangs)"],
            [],
            id="both",
        ),
    ],
)
def test_former_names_of_arguments(tmp_path: Path, arguments: str, shown: list[str], hidden: list[str]) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(f"actions: allocate\ntiers:\n- plugins: [{{name: gang, arguments: {arguments}}}]\n")
    printed = " ".join(run("check-conf", conf).out.split())
    assert all(each in printed for each in shown), printed
    assert not any(each in printed for each in hidden), printed
