"""What pages show of a cycle."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.table import Table
from pumice.columns.tables import Tables
from pumice.runtime.job_states import STATES
from pumice.web import documents
from pumice.web.feed import DOCUMENTS, Feed
from pumice.web.summary import CycleSummary, summarize
from tests.unit.web.worlds import summary


@pytest.fixture(scope="module")
def shown() -> CycleSummary:
    return summary()


def test_jobs_have_a_state_and_those_that_wait_a_reason(shown: CycleSummary) -> None:
    jobs = shown.jobs
    states = {name: STATES[state] for name, state in zip(jobs.names, jobs.state, strict=True)}
    assert states == {"ns/runs": "runs", "ns/starts": "starts", "ns/large": "waits", "ns/below": "waits"}
    assert [bool(text) for text in jobs.sentences] == [code >= 0 for code in jobs.code.tolist()]


def test_what_waits_is_grouped_by_code_with_amounts_and_an_example(shown: CycleSummary) -> None:
    found = {kind["code"]: kind for kind in documents.overview(shown, {})["waiting"]}
    assert found.keys() == {"Shortage", "QueueLimit"}
    assert found["Shortage"]["example"] == "ns/large" and found["Shortage"]["asks"][0] == 6
    assert "4 of 6 pods fit" in found["Shortage"]["sentence"]


def test_a_queue_includes_those_below_it(shown: CycleSummary) -> None:
    found = {queue["name"]: queue for queue in documents.queues(shown)["queues"]}
    assert list(found) == ["default", "org", "team"]
    assert found["org"]["waiting"][0] == found["team"]["waiting"][0] == 3
    assert (found["team"]["depth"], found["team"]["parent"], found["team"]["limit"][0]) == (1, "org", 2)
    assert found["default"]["used"][0] == 4 and found["default"]["limit"] == [None] * 3


def test_nodes_are_listed_by_group_and_a_cordon_is_named(shown: CycleSummary) -> None:
    found = documents.nodes(shown)
    assert found["groupings"] == [{"name": "topology.kubernetes.io/rack", "groups": ["a", "b"], "of": [0, 1, 1]}]
    assert found["kinds"] == [{"why": "cordoned", "nodes": 1, "examples": ["n2"]}]
    assert found["used"][0][:1] == [2] and found["pods"][0] == 2


def test_documents_are_json_without_infinity(shown: CycleSummary) -> None:
    for name in DOCUMENTS:
        feed = Feed()
        feed.publish(shown)
        text = feed.document(name).decode()
        assert "Infinity" not in text and "NaN" not in text


def test_a_summary_holds_none_of_the_tables_of_its_cycle(shown: CycleSummary) -> None:
    """Otherwise pages would keep a whole cluster in memory, and read columns that the next cycle writes."""

    def parts(value: object) -> list[object]:
        fields = getattr(value, "__struct_fields__", ())
        below = [parts(getattr(value, field)) for field in fields]
        listed = [parts(each) for each in value] if isinstance(value, list | tuple) else []
        return [value, *(part for each in (*below, *listed) for part in each)]

    found = parts(shown)
    assert not any(isinstance(each, Table | Tables) for each in found)
    arrays = [each for each in found if isinstance(each, np.ndarray)]
    assert arrays and all(each.base is None or each.base.base is None for each in arrays)


def test_queues_in_a_circle_are_shown_once() -> None:
    from pumice.answers.world import Trials, World
    from pumice.testing.build import node, policy, queue
    from tests.unit.web.worlds import CONF

    objects = [queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="b"), node("n", 1)]
    base = Trials(World(objects, policy(CONF), 0.0, ("volcano",)), 1).base
    found = documents.queues(summarize(base.outcome, base.decisions, ""))["queues"]
    assert sorted(each["name"] for each in found if each["name"] in "abc") == ["a", "b", "c"]
