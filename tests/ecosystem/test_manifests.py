"""Manifests as controllers make them: the gangs that are read from them, and that all their pods are bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pumice.model.pod import Pod
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.scenes.inputs import read_inputs
from pumice.volcano.table import DEFAULT_CONF
from tests.ecosystem.gangs import HERE, MANIFESTS, Plain, gangs_of, name_of, objects_of
from tests.unit.cli.kit import run

EXPECTED: dict[str, dict[str, Plain]] = yaml.safe_load((HERE / "gangs.yaml").read_text())
CONFS = {"volcano": DEFAULT_CONF, "native": DEFAULT_CONF, "kai": "dialect: kai\n"}
_SOURCE = re.compile(r"# .+ (\d+(\.\d+)+|main)\b.*(, |: |; ).+\n")


def test_every_manifest_names_controller_version_and_source() -> None:
    assert len(MANIFESTS) >= 40 and {each.parent.name for each in MANIFESTS} == set(CONFS)
    heads = {name_of(each): each.read_text().partition("\n")[0] + "\n" for each in MANIFESTS}
    assert [name for name, head in heads.items() if not _SOURCE.fullmatch(head)] == []
    assert set(EXPECTED) == set(heads)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=name_of)
def test_gangs_are_those_of_the_original_scheduler(manifest: Path) -> None:
    assert gangs_of(manifest) == EXPECTED[name_of(manifest)]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=name_of)
def test_all_pods_are_bound_in_one_cycle(manifest: Path) -> None:
    policy = loaded_from_text(CONFS[manifest.parent.name], builtin_registry(), where="default").policy
    objects = objects_of(manifest)
    answer = schedule_once(objects, policy, 1.0, (policy.dialect.scheduler,))
    assert set(answer.binds) == {each.key for each in objects if isinstance(each, Pod)} and not answer.evicts


@pytest.mark.parametrize(("form", "is_kai"), [("kai", True), ("volcano", False), ("native", False)])
def test_the_language_of_a_folder_is_that_of_its_queues_and_groups(form: str, is_kai: bool) -> None:
    cluster, manifest = HERE / f"cluster-{form}.yaml", HERE / "manifests" / form
    assert read_inputs([str(cluster), str(manifest)]).is_kai is is_kai


def test_schedule_takes_kais_policy_for_its_objects() -> None:
    reports = run("schedule", HERE / "cluster-kai.yaml", HERE / "manifests/kai/jobset.yaml", "--json")
    assert len(reports.json["binds"]) == 5 and any("KAI's default" in line for line in reports.lines("note"))
