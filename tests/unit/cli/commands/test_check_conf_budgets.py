"""``pumice check-conf`` warns of actions that evict pods of which no plugin asks a disruption budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.kit import run

WARNING = "warning: preempt: no tier has the plugin pdb, so pods are evicted that a PodDisruptionBudget protects"


@pytest.mark.parametrize(
    ("actions", "plugins", "is_warned"),
    [
        pytest.param("allocate, preempt", "[{name: gang}]", True, id="preempts without"),
        pytest.param("allocate, preempt", "[{name: gang}, {name: pdb}]", False, id="preempts with"),
        pytest.param("allocate", "[{name: gang}]", False, id="evicts nothing"),
    ],
)
def test_evictions_without_the_plugin_pdb(tmp_path: Path, actions: str, plugins: str, *, is_warned: bool) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(f"actions: {actions}\ntiers:\n- plugins: {plugins}\n")
    result = run("check-conf", str(conf))
    assert result.code == 0
    assert (WARNING in result.err) is is_warned
