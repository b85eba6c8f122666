"""What filters say about nodes, row by row, and what becomes of it over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.framework.plugin.filter_result import Code, FilterResult, FitErrors, Unfit, gather
from pumice.model.blockers import NodeFilter, Shortage

# -- reasons, counted


@pytest.mark.parametrize(
    ("nodes", "against"),
    [
        pytest.param(3, (NodeFilter("mine", 3, 3, "never"),), id="on every node"),
        pytest.param(0, (), id="everywhere is nowhere"),
    ],
)
def test_one_reason_everywhere(nodes: int, against: tuple[NodeFilter, ...]) -> None:
    errors = FitErrors.everywhere(Unfit("never"), nodes, "mine")
    assert (errors.against, errors.node_count) == (against, nodes)


# -- filter_results


def reasons(filter_result: FilterResult) -> list[str]:
    """Return why each row is refused."""
    return [" ".join(unfit.reason for unfit in filter_result.why[code]) for code in filter_result.codes]


def filter_result(*per_row: str) -> FilterResult:
    """One filter_result; each row's reasons, in a word each."""
    distinct = [""] + sorted(set(per_row) - {""})
    codes = np.array([distinct.index(each) for each in per_row], dtype=np.int32)
    return FilterResult(codes, tuple(tuple(Unfit(word) for word in each.split()) for each in distinct))


@pytest.mark.parametrize(
    ("filter_results", "together"),
    [
        pytest.param([], ["", "", ""], id="nobody"),
        pytest.param([("a", "", "b c")], ["a", "", "b c"], id="one"),
        pytest.param([("a", "", ""), ("x", "y", "")], ["a x", "y", ""], id="in their order"),
        pytest.param([("x", "x", ""), ("a", "b", "b")], ["x a", "x b", "b"], id="whatever sorts first"),
        pytest.param([("a", "", ""), ("", "", ""), ("x", "x", "a")], ["a x", "x", "a"], id="three"),
        pytest.param([("a", "b c", ""), ("d", "d", "e f")], ["a d", "b c d", "e f"], id="several reasons each"),
    ],
)
def test_gather(filter_results: list[tuple[str, ...]], together: list[str]) -> None:
    found = gather([filter_result(*each) for each in filter_results], 3)
    assert reasons(found) == together
    assert found.codes.dtype == np.int32
    assert found.why[0] == ()


def test_one_reason_against_what_does_not_fit() -> None:
    assert reasons(FilterResult.of(np.array([True, False, True]), Unfit("full"))) == ["", "full", ""]


# -- what users read of it


@pytest.mark.parametrize(
    ("more", "same"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"node_rows": np.array([1], np.int32), "codes": np.array([2], np.int8)}, True, id="which nodes"),
        pytest.param({"skipped": True}, True, id="that it was skipped"),
        pytest.param({"against": (NodeFilter("", 2, 2, "a"),)}, False, id="how often"),
        pytest.param({"against": (NodeFilter("", 1, 2, "b"),)}, False, id="the reason"),
        pytest.param({"against": (NodeFilter("mine", 1, 2, "a"),)}, False, id="by which plugin"),
        pytest.param({"node_count": 3}, False, id="of how many nodes"),
        pytest.param({"message": "full"}, False, id="the message"),
        pytest.param({"hypernode": "rack"}, False, id="where"),
    ],
)
def test_what_is_said(more: dict[str, Any], same: bool) -> None:
    plain = {"against": (NodeFilter("", 1, 2, "a"),), "node_count": 2}
    assert (FitErrors(**plain).said == FitErrors(**{**plain, **more}).said) is same


def test_amounts_of_free_resources_are_not_what_is_said() -> None:
    short = Shortage("cpu", 1000.0, 1, 500.0, 500.0, 1, 1)
    less = replace(short, free=250.0, best=250.0)
    assert FitErrors((short,), 1) == FitErrors((less,), 1) != FitErrors((replace(short, resource="memory"),), 1)


def test_codes_are_kube_scheduler_s() -> None:
    assert [code.name for code in Code] == ["SUCCESS", "ERROR", "UNSCHEDULABLE", "UNRESOLVABLE", "WAIT", "SKIP"]
    assert list(Code) == list(range(6))
