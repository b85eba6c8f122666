"""Policy files: whatever the text is, there is a policy or one clear error, and never a crash of the process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.framework.plugin.errors import PolicyError
from pumice.runtime.policy.conf import SIZE_MAX, load_policy, loaded_from_file, policy_of
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

REGISTRY = volcano_registry()


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as raised:
        policy_of(text, REGISTRY)
    return raised.value.problems


@pytest.mark.parametrize("text", [DEFAULT_CONF, f"# ours\n---\n{DEFAULT_CONF}...\n"], ids=["plain", "with markers"])
def test_the_default_conf(text: str) -> None:
    policy = policy_of(text, REGISTRY)
    assert [action.name for action in policy.actions] == ["enqueue", "allocate", "backfill"]
    assert [len(tier) for tier in policy.tiers] == [3, 5]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "conf: found nothing, wanted a mapping with actions and tiers", id="empty"),
        pytest.param(
            "actions: [", "conf: is not valid YAML: line 2, column 1: while parsing a flow node", id="no YAML"
        ),
        pytest.param("- " * 100_000 + "a", "conf: is not usable YAML: from line 1: nested more", id="blocks"),
        pytest.param("tiers: " + "[" * 100_000, "conf: is not usable YAML: from line 1: nested", id="brackets"),
        pytest.param("[" * 5000 + "]" * 5000, "conf: is not usable YAML: from line 1: nested", id="closed"),
        pytest.param("tiers: &a [*a]", "conf: is not usable YAML: from line 1: an alias inside", id="itself"),
        pytest.param("tiers: " + "9" * 5000, "conf: is not valid YAML: line 1, column 8: found '999", id="a number"),
        pytest.param("a: \0", "conf: is not usable YAML: from line 1: unacceptable character", id="a zero"),
        pytest.param("tiers:\ntiers:", "conf: is not valid YAML: line 2, column 1: duplicate key tiers", id="twice"),
        pytest.param(f"{DEFAULT_CONF}---\n{DEFAULT_CONF}", "conf: found 2 documents, wanted one", id="two documents"),
        pytest.param("#" * (SIZE_MAX + 1), "conf: found 1048577 characters, wanted at most 1048576", id="too long"),
        pytest.param("a: !!python/name:os.system", "conf: is not valid YAML: line 1, column 4: could not", id="python"),
    ],
)
def test_what_is_no_conf_is_one_clear_error(text: str, why: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith(why)


def test_every_problem_is_named_with_its_place() -> None:
    text = (
        'actions: "allocate"\ntier: []\ntiers:\n- plugins:\n  - name: gagn\n  - name: drf\n    enablePredicat: true\n'
    )
    assert problems_of(text) == (
        'conf: unknown key "tier"; did you mean "tiers"?',
        'conf: tiers[0].plugins[0]: unknown plugin "gagn"; did you mean "gang"?',
        'conf: tiers[0].plugins[1] (drf): unknown switch "enablePredicat"; did you mean "enablePredicate"?',
    )


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_bytes(b"\xef\xbb\xbf" + DEFAULT_CONF.encode())
    assert len(load_policy(path, REGISTRY).actions) == 3
    path.write_bytes(b"\xff")
    with pytest.raises(PolicyError, match=r"volcano-scheduler.conf: is not UTF-8 text: byte 0 is 0xff"):
        load_policy(path, REGISTRY)
    with pytest.raises(PolicyError, match=r"gone: cannot be read: No such file or directory$"):
        load_policy(tmp_path / "gone", REGISTRY)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["allocate", "gang", "volcano", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "plugins", "arguments", "enablePredicate", "actions", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
CONFS = st.dictionaries(st.sampled_from(["actions", "tiers", "configurations", "metrics", "x"]), VALUES, max_size=4)


@given(CONFS)
@settings(max_examples=300)
def test_any_document_is_a_policy_or_names_its_problems(conf: dict[str, object]) -> None:
    text = json.dumps(conf).replace("NaN", ".nan").replace("Infinity", ".inf")
    for strict in (True, False):
        try:
            policy_of(text, REGISTRY, strict=strict)
        except PolicyError as error:
            assert error.problems
            assert all(problem.startswith("conf") for problem in error.problems)


# -- forms of a conf, and what is in quotes

GANG = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def config_map(data: dict[str, str]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})


@pytest.mark.parametrize(
    "data", [{"volcano-scheduler.conf": GANG, "other": "x"}, {"mine.conf": GANG}], ids=["named", "alone"]
)
def test_a_config_map_is_the_conf_in_it(data: dict[str, str]) -> None:
    assert [action.name for action in policy_of(config_map(data), REGISTRY).actions] == ["allocate"]


def test_problems_in_a_config_map_say_where() -> None:
    (problem,) = problems_of(config_map({"volcano-scheduler.conf": GANG.replace("gang", "gnag")}))
    assert problem.startswith("conf: data[volcano-scheduler.conf]: tiers[0].plugins[0]: unknown plugin")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(config_map({"a": GANG, "b": GANG}), "found the keys a, b", id="two"),
        pytest.param('{"kind": "ConfigMap"}', "found the keys none", id="empty"),
    ],
)
def test_a_config_map_without_the_conf(text: str, found: str) -> None:
    (problem,) = problems_of(text)
    assert problem == f"conf: ConfigMap: {found}, wanted volcano-scheduler.conf, or one key alone"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(
            'arguments: {binpack.weight: "3"}',
            "argument binpack.weight: found '3', wanted a whole number: the quotes make it a string; write 3",
            id="number",
        ),
        pytest.param(
            "enableNodeOrder: 'true'",
            "enableNodeOrder: found 'true', wanted true or false: the quotes make it a string; write true",
            id="switch",
        ),
        pytest.param("arguments: {binpack.weight: heavy}", "found 'heavy', wanted a whole number", id="a-word"),
        pytest.param("arguments: {binpack.weight: 2.5}", "found 2.5, wanted a whole number", id="a-plain-number"),
    ],
)
def test_what_is_in_quotes_is_said_to_be(line: str, said: str) -> None:
    (problem,) = problems_of(f"{GANG}  - name: binpack\n    {line}\n")
    assert problem.endswith(said)


def test_a_quoted_number_where_a_text_is_wanted_is_fine() -> None:
    policy_of(f'{GANG}  - name: binpack\n    arguments: {{binpack.resources: "3"}}\n', REGISTRY)


# -- lenient

MORE = GANG.replace('"allocate"', '"enqueue, evict, alocate, allocate"')


def test_a_lenient_reading_goes_without_unknown_actions_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text(MORE)
    found = loaded_from_file(file, REGISTRY, strict=False)
    assert [action.name for action in found.policy.actions] == ["enqueue", "allocate"]
    assert found.left_out == ("evict", "alocate")
    assert found.policy.warnings == (
        'actions: unknown action "evict"; known: allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt,'
        " reclaim, shuffle (ignored)",
        'actions: unknown action "alocate"; did you mean "allocate"? (ignored)',
    )


def test_a_strict_reading_goes_without_none() -> None:
    assert len(problems_of(MORE)) == 2


def test_of_a_conf_without_any_known_action_nothing_is_left_out() -> None:
    with pytest.raises(PolicyError) as raised:
        policy_of(GANG.replace("allocate", "evict, replace"), REGISTRY, strict=False)
    assert len(raised.value.problems) == 2
