"""CEL selectors of devices: loops that are hidden, faults of the library, and what an expression looks at."""

from __future__ import annotations

import pytest

from pumice.algorithms.cel import SelectorError, check, face_of, selects, steps_of
from pumice.algorithms.cel import _answer as answer  # the cache of evaluations: their number is its size
from pumice.algorithms.cel_tree import read_tree

DEVICE = face_of("d.com", {"model": ("string", "a"), "d.com/serial": ("string", "7")}, {"memory": 8.0})
OF_DEVICE = 'device.attributes["d.com"].'


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("[1].all(i, [1].all(j, true))", id="in plain sight"),
        pytest.param("[1].all // (\n(i, [1].all // (\n(j, true))", id="behind comments with parentheses"),
        pytest.param("[1].all(i, // '\n [2].exists(j, true)) // '", id="behind comments with quotes"),
        pytest.param("[1].map(i, [[1].filter(j, true)]).size() == 1", id="within a list"),
        pytest.param('[1].all(i, {"a": [1].exists_one(j, true)}["a"])', id="within a map"),
    ],
)
def test_a_loop_within_a_loop_is_refused_however_it_is_written(expression: str) -> None:
    with pytest.raises(SelectorError, match=r"^a selector with a loop within a loop$"):
        check(expression)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("[1, 2].filter(i, i > 1).all(i, i == 2)", id="one after the other"),
        pytest.param('"x.all(i, y.all(j, k))" != ""', id="in a text"),
        pytest.param("true // [1].all(i, [1].all(j, true))", id="in a comment"),
    ],
)
def test_other_loops_are_allowed(expression: str) -> None:
    assert selects(expression, DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("optional.of(1)", id="a value that has no Python type"),
        pytest.param('"\ud800" == "a"', id="half of a character"),
        pytest.param("1 / 0 == 1", id="division by zero"),
        pytest.param(OF_DEVICE + "model > 1", id="a text and a number"),
        pytest.param('quantity("x") == 1', id="an error of a function"),
        pytest.param("device", id="the device"),
        pytest.param("(" * 900 + "true" + ")" * 900, id="depth"),
        pytest.param("", id="nothing"),
    ],
)
def test_faults_of_the_library_are_selector_errors_without_its_own_names(expression: str) -> None:
    with pytest.raises(SelectorError) as raised:
        selects(expression, DEVICE)
    assert not any(each in str(raised.value) for each in ("cel_expr_python", "pybind", "self:", ".py", "Traceback"))


def test_devices_that_differ_in_what_is_not_looked_at_are_evaluated_once() -> None:
    before = answer.cache_info().misses
    for serial in range(50):
        face = face_of("d.com", {"model": ("string", "a"), "serial": ("string", str(serial))}, {"memory": 8.0})
        assert selects(OF_DEVICE + 'model == "a" && device.driver == "d.com" && has(' + OF_DEVICE + "model)", face)
    assert answer.cache_info().misses == before + 1


@pytest.mark.parametrize(
    ("expression", "is_selected"),
    [
        pytest.param(OF_DEVICE + 'serial == "7"', True, id="by name"),
        pytest.param('"serial" in device.attributes["d.com"]', True, id="a key"),
        pytest.param('device.attributes["d.com"].exists(k, k == "serial")', True, id="in a loop"),
        pytest.param(OF_DEVICE + '?serial.orValue("") == "7"', True, id="optional"),
        pytest.param('device.attributes[?"d.com"].hasValue()', True, id="optional domain"),
        pytest.param('device["attributes"]["d.com"]["serial"] == "7"', True, id="by index"),
        pytest.param('device.attributes["d" + ".com"].serial == "7"', True, id="computed"),
        pytest.param('device.attributes["d.com"].size() == 2', True, id="how many"),
        pytest.param('[device].all(d, d.attributes["d.com"].serial == "7")', True, id="by another name"),
        pytest.param('[1].all(i, device.attributes["d.com"].serial == "7")', True, id="within a loop"),
        pytest.param('device.capacity["d.com"].memory == 8000', True, id="capacity"),
        pytest.param('"x" in device.attributes["other.com"]', False, id="a domain that is not there"),
        pytest.param('has(device.attributes["other.com"].x)', False, id="a name that is not there"),
    ],
)
def test_an_expression_sees_all_that_it_looks_at(expression: str, is_selected: bool) -> None:
    assert selects(expression, DEVICE) is is_selected


@pytest.mark.parametrize("broken", [b"\x12\x05\x22\x80", b"\x12\x01\x23", b"\xff"])
def test_bytes_that_are_no_tree_are_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match="number|wire type"):
        read_tree(broken)


TEXT = OF_DEVICE + "model"
LONG = ", ".join(map(str, range(200)))


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        pytest.param(OF_DEVICE + 'model == "a"', 1, 1, id="a comparison"),
        pytest.param(" || ".join(f"{OF_DEVICE}serial == '{i}'" for i in range(30)), 1, 2, id="thirty"),
        pytest.param(TEXT + '.matches("^abc$")', 1, 1, id="a pattern"),
        pytest.param(f"[{LONG}].exists(a, {OF_DEVICE}serial == string(a))", 3, 8, id="a loop over a long list"),
        pytest.param(f"[{LONG}].map(a, a + 1).exists(a, a == 9)", 20, 100, id="a list that grows"),
        pytest.param(f"[{LONG}].exists(a, {TEXT}.matches('^ab'))", 60, 200, id="a pattern in a loop"),
        pytest.param(TEXT + r".matches('\\pL{2}')", 60, 300, id="a pattern of many letters"),
        pytest.param(" && ".join(f"semver('1.2.{i}') != '{i}'" for i in range(40)), 5, 20, id="functions of ours"),
    ],
)
def test_steps_are_what_an_evaluation_takes_at_most(expression: str, least: int, most: int) -> None:
    assert least <= steps_of(expression) <= most


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param(TEXT + r".matches('\\pL{100}')", "a pattern that cannot be used: pattern too large", id="large"),
        pytest.param(TEXT + ".matches('(')", "a pattern that cannot be used: missing", id="no pattern"),
        pytest.param(f"'x'.matches({TEXT})", "a pattern that is no constant", id="computed"),
        pytest.param(f"matches('x', {TEXT} + 'y')", "a pattern that is no constant", id="computed, as a function"),
    ],
)
def test_patterns_that_may_take_long_are_refused(expression: str, why: str) -> None:
    """One of a hundred letters takes a tenth of a second for each device, since the library compiles it each time."""
    with pytest.raises(SelectorError, match=f"^a selector with {why}"):
        check(expression)
