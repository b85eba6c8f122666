"""Inputs on which the reference panics: they must do no harm. What is recorded of some is from runs that went well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from pumice.model.manifest import Decoder
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.sim.run import simulate
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.settings import SimSettings
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.conformance.runner import run_conformance
from tests.conformance.runner.result import Status

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
FOLDER = SHARED / "conformance" / "volcano-generated" / "crash"
CASES = sorted(FOLDER.glob("*.yaml"))

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not CASES, reason=f"no recorded cases at {FOLDER}: put `shared` beside the checkout or set PUMICE_SHARED"
    ),
]


def test_the_runner_reports_them_all_and_none_fails() -> None:
    report = run_conformance([FOLDER])
    assert len(report.cases) == len(CASES)
    assert Status.FAILED not in {case.status for case in report.cases}
    assert all(case.reason for case in report.cases if case.status != Status.PASSED)


@pytest.mark.parametrize("own", [False, True], ids=["default policy", "what is known of its own"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_they_can_be_scheduled_and_simulated(path: Path, own: bool) -> None:
    case = yaml.safe_load(path.read_text())
    conf = known_part(case["conf"]) if own else DEFAULT_CONF
    policy = policy_of(conf, volcano_registry(), strict=not own)
    decoder = Decoder()
    objects = [decoder.decode(raw) for raw in case["objects"]]
    answer = schedule_once(objects, policy, now=1.8e9)
    nodes = {obj["metadata"]["name"] for obj in case["objects"] if obj["kind"] == "Node"}
    assert set(answer.binds.values()) <= nodes
    assert answer.evicts == []
    ran = simulate(scene_of(objects), policy, SimSettings(start=1.8e9, until=3600.0, check_laws=True))
    assert ran.result.cycles > 0


def known_part(conf: str) -> str:
    """The conf with the actions that there are."""
    actions = yaml.safe_load(conf)["actions"]
    known = [name for name in actions.replace(" ", "").split(",") if name in ("enqueue", "allocate", "backfill")]
    return conf.replace(actions, ", ".join(known))
