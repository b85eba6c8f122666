"""Sub-jobs of a gang, and the selectors that choose their pods. (Volcano's own tables: tests/conformance.)"""

from __future__ import annotations

import pytest

from pumice.model.pod import LabelSelector, Requirement
from pumice.model.selectors import holds, matches
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.model.workloads.subgroups import SubJobKey, match_index, min_available, sub_job_id, sub_job_of, topology_of

RACK = NetworkTopology("hard", 1)
WORKERS = SubGroupPolicy("workers", RACK, 2, 1, LabelSelector((Requirement("role", "In", ("w",)),)), ("part", "zone"))
REST = SubGroupPolicy("rest", match_label_keys=("part",))
GROUP = PodGroup("ns", "g", "u", min_member=5, topology=NetworkTopology("soft"), sub_groups=(WORKERS, REST))


def test_the_first_policy_that_captures_a_pod_counts() -> None:
    key = sub_job_of({"role": "w", "part": "3", "zone": "a"}, GROUP)
    assert key == SubJobKey("ns/g/workers", "ns/g/workers-3-a", 3, WORKERS)
    assert sub_job_of({"role": "w", "part": "3"}, GROUP) == SubJobKey("ns/g/rest", "ns/g/rest-3", 3, REST)
    assert sub_job_of({"role": "w", "part": ""}, GROUP) == SubJobKey("ns/g", "ns/g")
    assert sub_job_of({}, PodGroup("ns", "g", "u", sub_groups=(SubGroupPolicy("bare"),))) == SubJobKey("ns/g", "ns/g")


def test_minimum_and_topology_come_from_the_policy_else_from_the_gang() -> None:
    named, default = sub_job_of({"role": "w", "part": "3", "zone": "a"}, GROUP), sub_job_of({}, GROUP)
    assert (min_available(named, GROUP), topology_of(named, GROUP)) == (2, RACK)
    assert (min_available(default, GROUP), topology_of(default, GROUP)) == (1, GROUP.topology)
    assert min_available(sub_job_of({"part": "x"}, GROUP), GROUP) == 1
    whole = PodGroup("ns", "g", "u", min_member=5)
    assert min_available(sub_job_of({}, whole), whole) == 5


def test_a_long_id_is_hashed() -> None:
    assert sub_job_id("ns/g", "p", ("v" * 128,)) == f"ns/g/p-{'v' * 128}"
    hashed = sub_job_id("ns/g", "p", ("v" * 64, "w" * 64))
    # FNV-1a of the joined values is 2168873976; each digit's code modulo 27 picks a letter
    assert hashed == "ns/g/p-" + "".join("bcdfghjklmnpqrstvwxz2456789"[ord(d) % 27] for d in "2168873976")
    assert sub_job_id("ns/g", "p", ("é" * 65,)) != f"ns/g/p-{'é' * 65}"  # bytes count, not letters


@pytest.mark.parametrize(
    ("values", "index"),
    [((), 0), (("7", "x"), 7), (("-3",), -3), (("+4",), 4), (("1_0",), 0), ((" 1",), 0), (("٣",), 0), (("9" * 19,), 0)],
)
def test_the_match_index_is_the_first_value_where_it_is_an_integer(values: tuple[str, ...], index: int) -> None:
    assert match_index(values) == index


@pytest.mark.parametrize(
    ("operator", "values", "found", "absent"),
    [
        ("In", ("1", "2"), True, False),
        ("NotIn", ("1", "2"), False, True),
        ("Exists", (), True, False),
        ("DoesNotExist", (), False, True),
        ("Gt", ("0",), True, False),
        ("Gt", ("1",), False, False),
        ("Lt", ("2",), True, False),
        ("Lt", ("x",), False, False),
        ("Like", ("1",), False, False),
    ],
)
def test_operators(operator: str, values: tuple[str, ...], found: bool, absent: bool) -> None:
    requirement = Requirement("k", operator, values)
    assert holds(requirement, {"k": "1"}) is found
    assert holds(requirement, {}) is absent
    assert matches(LabelSelector((requirement, Requirement("k", "Exists"))), {"k": "1"}) is found


def test_an_empty_selector_matches_everything() -> None:
    assert matches(LabelSelector(), {})
