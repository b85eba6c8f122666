"""Jobs by what a page asks."""

from __future__ import annotations

import pytest

from pumice.web.jobs_query import JobsIndex, QueryError, query_of
from tests.unit.web.worlds import summary


@pytest.fixture(scope="module")
def index() -> JobsIndex:
    return JobsIndex(summary())


def names(index: JobsIndex, **given: str) -> list[str]:
    return [row["name"] for row in index.answer(query_of(given))["rows"]]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param({}, ["below", "large", "runs", "starts"], id="all by name"),
        pytest.param({"order": "down"}, ["starts", "runs", "large", "below"], id="backwards"),
        pytest.param({"text": "ar"}, ["large", "starts"], id="part of a name"),
        pytest.param({"state": "waits"}, ["below", "large"], id="state"),
        pytest.param({"code": "Shortage"}, ["large"], id="reason"),
        pytest.param({"queue": "team"}, ["below"], id="queue"),
        pytest.param({"queue": "org"}, ["below"], id="queue above"),
        pytest.param({"sort": "cores", "order": "down"}, ["large", "below", "runs", "starts"], id="amount"),
        pytest.param({"sort": "created"}, ["runs", "starts", "large", "below"], id="age"),
        pytest.param({"offset": "1", "rows": "2"}, ["large", "runs"], id="a part"),
        pytest.param({"offset": "9"}, [], id="beyond the end"),
    ],
)
def test_rows(index: JobsIndex, given: dict[str, str], wanted: list[str]) -> None:
    assert names(index, **given) == [f"ns/{name}" for name in wanted]


def test_pages_of_an_order_with_ties_do_not_overlap(index: JobsIndex) -> None:
    parts = [names(index, sort="priority", offset=str(i), rows="1")[0] for i in range(4)]
    assert sorted(parts) == names(index)


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        pytest.param("queue", {"default": 3, "team": 1}, id="queue"),
        pytest.param("state", {"waits": 2, "runs": 1, "starts": 1}, id="state"),
        pytest.param("reason", {"": 2, "Shortage": 1, "QueueLimit": 1}, id="reason"),
    ],
)
def test_groups_count_the_jobs_that_match(index: JobsIndex, group: str, wanted: dict[str, int]) -> None:
    found = index.answer(query_of({"group": group}))
    assert {each["name"]: each["jobs"] for each in found["groups"]} == wanted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"sort": "colour"}, "sort 'colour', wanted one of name", id="sort"),
        pytest.param({"state": "x"}, "state 'x', wanted one of starts", id="state"),
        pytest.param({"queue": "nope"}, "queue 'nope' does not exist", id="queue"),
        pytest.param({"rows": "501"}, "wanted a whole number from 1 to 500", id="too many rows"),
        pytest.param({"offset": "-1"}, "wanted a whole number", id="negative"),
        pytest.param({"offset": "9" * 400}, "wanted a whole number", id="huge"),
        pytest.param({"text": "x" * 201}, "wanted at most 200", id="long text"),
        pytest.param({"colour": "red"}, "unknown parameter 'colour'", id="unknown"),
    ],
)
def test_wrong_questions_say_what_was_wanted(index: JobsIndex, given: dict[str, str], says: str) -> None:
    with pytest.raises(QueryError, match="^.*" + says.split("(", maxsplit=1)[0]):
        index.answer(query_of(given))
