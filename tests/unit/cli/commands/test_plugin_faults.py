"""A plugin that answers wrongly is named, the job is skipped, and the rest of the command goes on."""

from pathlib import Path

import pytest

from tests.unit.cli.kit import GOOD, run

PLUGIN = """
from pumice.api import Node, Session, Task, plugin, points

@plugin("odd")
@points.node_order
def odd(ssn: Session, task: Task, node: Node) -> float:
    return ANSWER
"""
CONF = "actions: allocate\ntiers: [{plugins: [name: gang, name: odd]}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "all.yaml").write_text(GOOD.replace("queue: team-a}", "queue: team-a}\nstatus: {phase: Inqueue}"))
    (tmp_path / "odd.conf").write_text(CONF)
    return tmp_path


@pytest.mark.parametrize(("answer", "code"), [('"x"', 1), ("1.0", 0)])
def test_schedule_exits_1_with_a_fault(folder: Path, answer: str, code: int) -> None:
    (folder / "plugins" / "odd.py").write_text(PLUGIN.replace("ANSWER", answer))
    arguments = (folder / "all.yaml", "--conf", folder / "odd.conf", "--plugins-dir", folder / "plugins")
    result = run("schedule", *arguments)
    assert result.code == code, result
    assert ("plugin odd, odd at node_order" in result.out + result.err) == bool(code)
    assert len(run("schedule", *arguments, "--json").json["plugin_faults"]) == code
