"""Every built-in plugin and action has a case that reads like the question of who met it first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.plugin.errors import PolicyError
from pumice.testing.cases import Case, check_case, read_cases
from pumice.volcano.table import volcano_registry

FOLDER = Path(__file__).parent
KINDS = ("plugins", "actions")
FOLDERS = (*KINDS, "kai", "pumice")
CASES = {path: read_cases(path) for folder in FOLDERS for path in sorted((FOLDER / folder).glob("*.yaml"))}
EACH = [pytest.param(path, each, id=f"{path.stem}: {each.case}") for path in CASES for each in CASES[path]]


@pytest.mark.parametrize("kind", KINDS)
def test_each_built_in_one_has_a_case(kind: str) -> None:
    known = getattr(volcano_registry().dialects["volcano"], kind)
    assert {path.stem for path in CASES if path.parent.name == kind} == set(known)


@pytest.mark.parametrize(("path", "case"), EACH)
def test_case(path: Path, case: Case) -> None:
    check_case(case)


@pytest.mark.parametrize(("path", "case"), EACH)
def test_it_would_be_otherwise_without_it(path: Path, case: Case) -> None:
    with pytest.raises((AssertionError, PolicyError)):
        check_case(without(path.stem, case))


def without(name: str, case: Case) -> Case:
    """The case under a policy without a plugin or an action."""
    actions = ", ".join(each for each in case.actions.split(", ") if each != name)
    plugins = tuple(each for each in case.plugins if name_of(each).rpartition("/")[2] != name)
    return replace(case, actions=actions, plugins=plugins)


def name_of(plugin: str | Mapping[str, Any]) -> str:
    return plugin if isinstance(plugin, str) else next(iter(plugin))
