"""Pods for which a binder was asked count on their node until it has bound them or given up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.bind_request import BindRequest
from pumice.model.decisions import CLAIMS, Bind, ClaimGrant
from pumice.model.devices.claims import AllocatedDevice, Allocation, ResourceClaim
from pumice.model.events import Event, Gone, Seen
from pumice.model.pod import Pod
from pumice.state.store import Store
from tests.unit.kai.cluster import job, node, queue, store

REQUEST = BindRequest("ns", "j-0", "j-0", "n", pod_uid="j-0")


def state(found: Store, pod: str = "ns/j-0") -> tuple[str, str]:
    """Its state, and its node."""
    tables = found.snapshot().tables
    row = next(row for row in tables.tasks.alive.nonzero()[0].tolist() if tables.tasks.pods[row].key == pod)
    at = int(tables.tasks.node[row])
    names = ("Pending", "Allocated", "Pipelined", "Binding", "Bound", "Running", "Releasing")
    return names[int(tables.tasks.status[row])], tables.nodes.facts.names[at] if at >= 0 else ""


def world(*, request_first: bool = False, **changes: Any) -> Store:
    request = replace(REQUEST, **changes)
    objects = [node("n"), node("m"), queue("q"), job("j", "q", [""])]
    return store(request, *objects) if request_first else store(*objects, request)


@pytest.mark.parametrize("request_first", [False, True])
def test_a_pod_counts_where_its_request_says(request_first: bool) -> None:
    assert state(world(request_first=request_first)) == ("Bound", "n")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"phase": "Failed"}, ("Pending", "")),
        ({"phase": "Failed", "failed_attempts": 2, "backoff_limit": 2}, ("Pending", "")),
        ({"phase": "Failed", "failed_attempts": 1, "backoff_limit": 2}, ("Bound", "n")),
        ({"phase": "Succeeded"}, ("Bound", "n")),
        ({"node": ""}, ("Pending", "")),
        ({"pod_uid": "another"}, ("Pending", "")),
        ({"unparsable": ("spec",)}, ("Pending", "")),
        ({"node": "gone"}, ("Bound", "")),
    ],
)
def test_only_live_requests_about_the_pod_itself_count(changes: dict[str, Any], found: tuple[str, str]) -> None:
    assert state(world(**changes)) == found


@pytest.mark.parametrize("assumed", [False, True])
def test_a_pod_is_free_again_when_its_request_fails_or_goes(assumed: bool) -> None:
    found = world()
    if assumed:
        found = store(node("n"), node("m"), queue("q"), job("j", "q", [""]))
        found.assume([Bind("ns/j-0", "j-0", "n", "ns/j")])
        assert state(found) == ("Binding", "n")
        found.apply(Seen(REQUEST))
    found.apply(Seen(replace(REQUEST, phase="Failed")))
    assert state(found) == ("Pending", "")
    found.apply(Gone(BindRequest, "ns/j-0"))
    found.apply(Seen(replace(REQUEST, node="m")))
    assert state(found) == ("Bound", "m")
    found.apply(Gone(BindRequest, "ns/j-0"))
    assert state(found) == ("Pending", "")


def test_what_the_pod_itself_says_goes_before() -> None:
    found = world()
    pod = next(obj for obj in job("j", "q", [""]) if isinstance(obj, Pod))
    found.apply(Seen(replace(pod, node_name="m", phase="Running")))
    assert state(found) == ("Running", "m")
    found.apply(Gone(BindRequest, "ns/j-0"))
    assert state(found) == ("Running", "m")
    found.apply(Gone(Pod, "ns/j-0"))
    found.apply(Seen(REQUEST))
    assert not found.snapshot().tables.tasks.alive.any()


def test_books_are_those_of_pods_that_are_bound() -> None:
    found, plain = world(), store(node("n"), node("m"), queue("q"), job("j", "q", ["n"]))
    assert (found.snapshot().tables.nodes.books == plain.snapshot().tables.nodes.books).all()
    found.apply(Gone(BindRequest, "ns/j-0"))
    assert not found.snapshot().tables.jobs.allocated.any()


@pytest.mark.parametrize("gives_up", [Seen(replace(REQUEST, phase="Failed")), Gone(BindRequest, "ns/j-0")])
def test_what_claims_were_given_is_free_again_when_the_binder_gives_up(gives_up: Event) -> None:
    devices = Allocation((AllocatedDevice("r", "gpu.com", "n", "0"),))
    found = store(node("n"), queue("q"), job("j", "q", [""]), ResourceClaim("ns", "c"))
    found.assume([Bind("ns/j-0", "j-0", "n", "ns/j", {CLAIMS: (ClaimGrant("ns/c", devices),)})])
    found.apply(Seen(REQUEST))
    assert [claim.allocation for claim in found.snapshot().tables.claims.objs] == [devices]
    found.apply(gives_up)
    assert [claim.allocation for claim in found.snapshot().tables.claims.objs] == [None]
