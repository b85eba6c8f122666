"""``pumice whatif --apply`` of groups whose tree is partly in the cluster already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.state.group_trees import apart, with_trees
from tests.unit.cli.test_native_groups import Raw, node
from tests.unit.state.test_group_trees import composite as composite_group
from tests.unit.state.test_group_trees import group as pod_group
from tests.unit.state.test_group_trees import pod as member
from tests.unit.volcano.gangs.test_tree_placement import composite, group, pods

QUEUE: Raw = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
ROOT = composite("all", 2)
INNER = [composite("in", 1, "all"), group("b", 1, "in"), *pods("volcano", "b", 1)]
FIRST = [group("a", 1), *pods("volcano", "a", 1)]
SECOND = [group("b", 1), *pods("volcano", "b", 1)]


def asked(folder: Path, there: list[Raw], applied: list[Raw], *more: str) -> dict[str, Any]:
    for name, objects in (("there.json", [QUEUE, node("n", 2), *there]), ("applied.json", applied)):
        (folder / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    words = ["whatif", str(folder / "there.json"), "--apply", str(folder / "applied.json"), "--json", *more]
    result = CliRunner().invoke(main, words)
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("there", "applied"),
    [
        pytest.param([ROOT, *FIRST], SECOND, id="a group below the root"),
        pytest.param([ROOT, *FIRST], INNER, id="a set with its group"),
        pytest.param([*FIRST, *SECOND], [ROOT], id="the root of groups that wait for it"),
        pytest.param([ROOT, *FIRST, SECOND[0]], SECOND[1:], id="pods of a group in the tree"),
        pytest.param([composite("all", 3), *FIRST, *SECOND], [ROOT], id="a smaller minimum"),
    ],
)
def test_a_tree_is_made_of_what_is_there_and_what_is_applied(
    tmp_path: Path, there: list[Raw], applied: list[Raw]
) -> None:
    assert asked(tmp_path, there, applied)["placed"] == {"ml/composite:all": 2}


def test_what_is_unlike_the_tree_changes_nothing_in_it(tmp_path: Path) -> None:
    found = asked(tmp_path, [ROOT, *FIRST], [group("c", 1, ""), *pods("volcano", "c", 1)])
    assert found["placed"] == {"ml/c": 1}


def test_a_tree_that_was_taken_apart_is_made_again() -> None:
    objects = [
        composite_group("all", least=2),
        composite_group("in", "all"),
        *(pod_group(name, parent) for name, parent in (("a", "all"), ("b", "in"), ("lost", "nowhere"))),
        *(member(f"p-{name}", name) for name in ("a", "b", "lost")),
    ]
    made = with_trees(objects)
    again = with_trees(apart(made))
    assert {each.key: each for each in again} == {each.key: each for each in made}
