"""reserve: a job that has waited keeps its room; others go before it only where they do not delay it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue
from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.filter_result import Unfit
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.blockers import (
    AHEAD,
    NO_PLACE,
    OVERRUN,
    REPLANNED,
    ROOM,
    STARTED,
    TOO_LONG,
    MovedBy,
    RoomReserved,
    StartReserved,
)
from pumice.model.pod import HostPort
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.ours.plugins.reserve import Reserve
from pumice.reasons.blockers import blockers_of
from pumice.reasons.sentences import sentence
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import Ran, cluster, node, podgroup, pods, run

HOUR = 3600.0
Notes = dict[str, float]


def policy(**arguments: Any) -> Policy:
    plugin = {"name": "ours/reserve", "arguments": {"after": "0s", **arguments}}
    plugins = [plugin, {"name": "gang"}, {"name": "predicates"}]
    return read_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())


def job(name: str, count: int, estimate: str, created: float = 0.0, *, on: str = "", **more: Any) -> list[Any]:
    """A gang of pods of 4 cores, which is running since 0 if it is ``on`` a node."""
    notes = {ESTIMATE_ANNOTATION: estimate} if estimate else {}
    began: dict[str, Any] = {"on": on, "start_time": 0.0} if on else {}
    group = podgroup(name, count, phase="Running" if on else "Inqueue", creation=created, annotations=notes)
    return [group, *pods(name, count, cpu=4, creation=created, **began, **more)]


def four(*jobs: list[Any]) -> Store:
    """Four nodes of 4 cores; on one a job runs until 10 h."""
    nodes = [node(f"n{i}", cpu=4) for i in range(4)]
    return cluster(*nodes, *job("runs", 1, "10h", on="n0"), *(each for one in jobs for each in one))


def started(found: Store, now: float = HOUR, **arguments: Any) -> list[str]:
    ran: Ran = run(found, policy(**arguments), now=now)
    assert not ran.outcome.faults, ran.outcome.faults
    return sorted({key.removeprefix("ns/").rpartition("-")[0] for key in ran.binds})


@pytest.mark.parametrize(
    ("count", "estimate", "starts"),
    [
        (3, "8h", True),  # it ends at 9 h, before the reservation begins
        (1, "10h", False),
        (3, "10h", False),
        (1, "", False),  # without an estimate it counts as 24 h
    ],
)
def test_a_job_goes_before_the_reserved_one_if_it_ends_before(count: int, estimate: str, starts: bool) -> None:
    found = four(job("whole", 4, "1h"), job("small", count, estimate, 60.0))
    assert started(found) == (["small"] if starts else [])


@pytest.mark.parametrize(("count", "starts"), [(1, True), (2, False)])
def test_a_late_job_may_take_the_places_that_are_spared(count: int, starts: bool) -> None:
    nodes = [node("n4", cpu=4)]
    found = four(nodes, job("whole", 4, "1h"), job("late", count, "9d", 60.0), job("runs2", 1, "10h", on="n1"))
    assert started(found) == (["late"] if starts else [])


def test_what_is_spared_is_spared_once() -> None:
    late = [job(f"late{i}", 1, "9d", 60.0 + i) for i in range(2)]
    found = four([node("n4", cpu=4)], job("whole", 4, "1h"), *late, job("runs2", 1, "10h", on="n1"))
    assert started(found) == ["late0"]


def test_the_oldest_that_fit_start_and_the_next_gets_the_reservation() -> None:
    found = four(job("first", 1, "9d"), job("whole", 3, "1h", 60.0), job("late", 1, "11h", 120.0))
    assert started(found) == ["first"]


def test_without_a_long_wait_there_is_no_reservation() -> None:
    found = four(job("whole", 4, "1h"), job("late", 3, "9d", 60.0))
    assert started(found, after="2h") == ["late"]


def test_room_is_kept_no_longer_than_its_bound() -> None:
    found = four(job("whole", 4, "1h"), job("late", 3, "9d", 60.0))
    assert started(found, now=5 * HOUR, holdsUpTo="4h") == ["late"]


def test_a_job_that_never_fits_reserves_nothing() -> None:
    found = four(job("whole", 9, "1h"), job("late", 3, "9d", 60.0))
    assert started(found) == ["late"]


def test_pods_that_cannot_use_its_nodes_take_none_of_its_places() -> None:
    found = four(
        [node("gpu", cpu=4, labels={"pool": "b"})],
        job("whole", 4, "1h", node_selector=(("pool", "a"),)),
        job("other", 1, "9d", 60.0, node_selector=(("pool", "b"),)),
    )
    assert started(found) == ["other"]


def test_the_reason_names_the_job_and_the_moment() -> None:
    ran = run(four(job("whole", 4, "1h"), job("late", 3, "9d", 60.0)), policy(), now=HOUR)
    (why,) = [entry.finding for entry in ran.outcome.entries if entry.subject == "ns/late"]
    assert why == RoomReserved("ns/whole", 10 * HOUR)


def test_equal_jobs_share_a_refusal_only_if_both_would_delay_the_reserved_one() -> None:
    late = [job(f"late{i}", 2, "9d", 60.0 + i) for i in range(3)]
    ran = run(four(job("whole", 4, "1h"), *late, job("short", 2, "1h", 90.0)), policy(), now=HOUR)
    refused = [entry.subject for entry in ran.outcome.entries if isinstance(entry.finding, RoomReserved)]
    assert refused == ["ns/late0", "ns/late1", "ns/late2"]
    assert sorted(ran.binds) == ["ns/short-0", "ns/short-1"]


def test_equal_tasks_of_a_gang_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = Reserve.allocatable

    def counted(self: Reserve, queue: Queue, tasks: TaskRows) -> int | Unfit:
        asked.append(len(tasks))
        return answer(self, queue, tasks)

    monkeypatch.setattr(Reserve, "allocatable", counted)
    assert started(four(job("whole", 4, "1h"), job("late", 3, "9d", 60.0))) == []
    assert asked == [4, 1, 3]  # the reserved gang and its fourth pod; then the late one, once


def test_without_backfill_no_job_starts_before_the_reserved_one() -> None:
    found = four(job("whole", 4, "1h"), job("small", 1, "1h", 60.0))
    assert started(found) == ["small"]
    assert started(found, backfill="false") == []


def test_the_refusal_is_a_reason_of_its_own() -> None:
    ran = run(four(job("whole", 4, "1h"), job("late", 3, "9d", 60.0)), policy(), now=HOUR)
    assert RoomReserved("ns/whole", 10 * HOUR) in blockers_of(ran.outcome)["ns/late"]


def test_a_wrong_duration_is_named() -> None:
    with pytest.raises(PolicyError, match="argument holdsUpTo: found '400d', wanted 1s to 366d"):
        policy(holdsUpTo="400d")


def test_places_that_are_spared_on_one_large_node_may_be_taken() -> None:
    found = cluster(
        node("n0", cpu=32), *job("runs", 6, "10h", on="n0"), *job("whole", 4, "1h"), *job("late", 2, "9d", 60.0)
    )
    assert started(found) == ["late"]  # of 8 places that are free at 10 h the reserved job needs 4


def test_of_jobs_of_one_second_the_first_by_name_gets_the_reservation() -> None:
    # Rows are in the order in which the store met the jobs, which is no order of age.
    assert started(four(job("late", 3, "9d"), job("a-whole", 4, "1h"))) == []


def said(found: Store, notes: dict[str, float], now: float, **arguments: str) -> tuple[StartReserved | None, Notes]:
    """Return what a cycle says of the start of ns/whole, and the notes for the next one."""
    ran = run(replace(found.snapshot(now), notes=notes), policy(**arguments), now=now)
    assert not ran.outcome.faults, ran.outcome.faults
    (finding,) = [
        entry.finding
        for entry in ran.outcome.entries
        if entry.subject == "ns/whole" and isinstance(entry.finding, StartReserved)
    ] or [None]
    after = {**notes, **ran.outcome.writes.notes}
    return finding, {name: value for name, value in after.items() if not math.isnan(value)}


def test_the_reserved_job_says_when_it_starts_and_what_it_waits_for() -> None:
    first, notes = said(four(job("whole", 4, "1h")), {}, HOUR)
    assert first == StartReserved(10 * HOUR, ("ns/runs",), 10 * HOUR)
    again, same = said(four(job("whole", 4, "1h")), notes, 2 * HOUR)
    assert again == first and same == notes
    text = sentence(first)
    assert text == "room is reserved for it, expected to start at 1970-01-01T10:00:00Z when ns/runs has ended"


def test_a_start_that_moves_says_what_moved_it() -> None:
    found = four(job("whole", 4, "1h"))
    _, notes = said(found, {}, HOUR)
    late, notes = said(found, notes, 11 * HOUR)
    # The next of 1, 2, 4, … minutes after its estimate.
    end = 10 * HOUR + 64 * 60
    assert late == StartReserved(end, ("ns/runs",), 10 * HOUR, 10 * HOUR, (MovedBy(OVERRUN, "ns/runs"),))
    assert sentence(late).endswith("1970-01-01T10:00:00Z was said before: ns/runs runs longer than its estimate")
    after, _ = said(found, notes, 11.05 * HOUR)
    assert after is not None and not after.moved_by
    assert sentence(after).endswith("; 1970-01-01T10:00:00Z was said first")


def test_a_start_moves_for_a_job_that_started_since() -> None:
    _, notes = said(four(job("whole", 4, "1h")), {}, HOUR)
    # It is on a node although it does not end in time: another scheduler placed it, say.
    other = job("other", 1, "20h", on="n1")
    other[1:] = [replace(pod, start_time=2 * HOUR) for pod in other[1:]]
    found, _ = said(four(job("whole", 4, "1h"), other), notes, 3 * HOUR)
    assert found is not None and found.moved_by == (MovedBy(STARTED, "ns/other"),)


def test_a_start_moves_for_a_node_that_is_gone() -> None:
    _, notes = said(four([node("n4", cpu=4)], job("whole", 4, "1h"), job("runs2", 1, "20h", on="n4")), {}, HOUR)
    # Only the node of the job that ends late is left in the place of the one that is gone.
    nodes = [node(f"n{i}", cpu=4) for i in (0, 2, 3, 4)]
    store = cluster(*nodes, *job("runs", 1, "10h", on="n0"), *job("whole", 4, "1h"), *job("runs2", 1, "20h", on="n4"))
    found, _ = said(store, notes, 2 * HOUR)
    assert found is not None and found.start == 20 * HOUR and found.moved_by == (MovedBy(ROOM),)


def test_a_start_moves_for_an_estimate_that_was_changed() -> None:
    _, notes = said(four(job("whole", 4, "1h")), {}, HOUR)
    nodes = [node(f"n{i}", cpu=4) for i in range(4)]
    store = cluster(*nodes, *job("runs", 1, "30h", on="n0"), *job("whole", 4, "1h"))
    found, _ = said(store, notes, 2 * HOUR)
    assert found is not None and found.start == 30 * HOUR and found.moved_by == (MovedBy(REPLANNED),)


def test_room_that_is_no_longer_reserved_says_so_once() -> None:
    store = four(job("whole", 4, "1h"))
    _, notes = said(store, {}, HOUR, holdsUpTo="4h")
    found, notes = said(store, notes, 5 * HOUR, holdsUpTo="4h")
    assert found == StartReserved(None, (), 10 * HOUR, 10 * HOUR, (MovedBy(TOO_LONG),)) and notes == {}
    assert sentence(found) == (
        "room is no longer reserved for it, which was to start at 1970-01-01T10:00:00Z: room was kept for as long as"
        " the policy allows"
    )
    assert said(store, notes, 6 * HOUR, holdsUpTo="4h") == (None, {})


def unlike(*jobs: list[Any]) -> Store:
    """Nodes of 8 and 2 cores, and a gang that fits only with its first two pods on the small one. Pod by pod they take
    the large one."""
    whole = [
        podgroup("whole", 4, phase="Inqueue", annotations={ESTIMATE_ANNOTATION: "1h"}),
        *pods("whole", 2, cpu=1),
        *pods("whole", 2, first=2, cpu=4),
    ]
    return cluster(node("n0", cpu=8), node("n1", cpu=2), *whole, *(each for one in jobs for each in one))


def test_room_is_kept_no_longer_than_its_estimate_for_a_gang_that_finds_no_place_in_it() -> None:
    store, notes, kept = unlike(job("late", 2, "9d", 60.0)), Notes(), []
    for now in (HOUR, HOUR + 60, 2 * HOUR - 1, 2 * HOUR, 2 * HOUR + 60):
        ran = run(replace(store.snapshot(now), notes=notes), policy(reservations=2), now=now)
        assert not ran.outcome.faults, ran.outcome.faults
        kept.append(ran.binds == {})
        if kept[-1]:
            assert ran.outcome.wakes_at == 2 * HOUR
        else:
            assert set(ran.binds) == {"ns/late-0", "ns/late-1"}
        notes |= ran.outcome.writes.notes
    # Nothing is carried out, so the last cycle could place the late job once more.
    assert kept == [True, True, True, False, False]
    assert notes == {"reserve.due/ns/whole": HOUR}


def test_the_gang_says_that_it_found_no_place_in_its_room() -> None:
    _, notes = said(unlike(job("runs", 1, "10h", on="n0")), {}, HOUR)
    for now in (10 * HOUR, 10.5 * HOUR):
        found, notes = said(unlike(), notes, now)
        assert found is None
    found, notes = said(unlike(), notes, 11 * HOUR)
    assert found == StartReserved(None, (), 10 * HOUR, 10 * HOUR, (MovedBy(NO_PLACE),))
    assert sentence(found).endswith("its room was free for as long as its estimate and it was not placed there")
    # Its room is taken and will be free again, so it gets a reservation as any other job.
    found, notes = said(unlike(job("runs", 1, "30h", on="n0")), notes, 12 * HOUR)
    assert found is not None and found.start == 30 * HOUR and "reserve.due/ns/whole" not in notes


def test_a_job_that_goes_before_is_named() -> None:
    _, notes = said(four(job("whole", 4, "1h", 60.0)), {}, HOUR)
    found, _ = said(four(job("whole", 4, "1h", 60.0), job("older", 4, "1h")), notes, 2 * HOUR)
    assert found is not None and found.start is None and found.moved_by == (MovedBy(AHEAD, "ns/older"),)


def test_the_start_is_among_the_reasons_of_the_job() -> None:
    ran = run(four(job("whole", 4, "1h")), policy(), now=HOUR)
    kinds = [type(each) for each in blockers_of(ran.outcome)["ns/whole"]]
    assert kinds[-1] is StartReserved and kinds[0] is not StartReserved, "the nearest reason is what is short"


def test_notes_that_say_anything_are_bounded_and_end() -> None:
    notes = {f"reserve.{part}/ns/j{i}": 1.0 for i in range(100) for part in ("said", "at", "first", "places")}
    _, after = said(four(job("whole", 4, "1h")), notes, HOUR)
    assert {name.partition("/")[2] for name in after} == {"ns/whole"}


def test_jobs_that_lie_about_their_run_times_delay_the_reserved_one_no_longer_than_is_allowed() -> None:
    """Every hour a job of one pod comes that says one minute and runs for 12 hours; four nodes, the gang needs all."""
    stay = {"runs": (0.0, "n0")}
    notes: Notes = {}
    for hour in range(1, 60):
        now = hour * HOUR
        stay = {name: (since, on) for name, (since, on) in stay.items() if since + 12 * HOUR > now}
        nodes = [node(f"n{i}", cpu=4) for i in range(4)]
        running = [job(name, 1, "1m", on=on) for name, (_, on) in stay.items()]
        for each, (since, _) in zip(running, stay.values(), strict=True):
            each[1:] = [replace(pod, start_time=since) for pod in each[1:]]
        store = cluster(
            *nodes,
            *(obj for each in running for obj in each),
            *job("whole", 4, "1h"),
            *job(f"liar{hour}", 1, "1m", now),
        )
        ran = run(replace(store.snapshot(now), notes=notes), policy(trustsFor="6h"), now=now)
        notes = {**notes, **ran.outcome.writes.notes}
        notes = {name: value for name, value in notes.items() if not math.isnan(value)}
        if "ns/whole-0" in ran.binds:
            break
        stay |= {f"liar{hour}": (now, on) for pod, on in ran.binds.items() if pod == f"ns/liar{hour}-0"}
    # It was to start within the first hours; 6 h of trust and 12 h of the longest job later it must have started.
    assert hour <= 2 + 6 + 12
    assert len(stay) < 4


def test_estimates_that_cannot_be_used_count_as_none() -> None:
    for wrong in ("-1h", "0s", "9999d", "1e30", "NaN"):
        # As 24 h, after the reservation begins.
        assert started(four(job("whole", 4, "1h"), job("small", 1, wrong, 60.0))) == []


def test_jobs_may_take_a_grace_to_end() -> None:
    store = four(job("whole", 4, "1h"), job("small", 1, "8h", 60.0), job("late", 1, "9h", 90.0))
    first, notes = said(store, {}, HOUR, grace="5m")
    assert first is not None and first.start == 10 * HOUR + 300
    # Within the grace nothing moves, and a job that ends with its grace before the start goes before.
    assert said(four(job("whole", 4, "1h")), notes, 10 * HOUR + 200, grace="5m")[0] == first
    assert started(store, grace="5m") == ["late", "small"] and started(store, now=HOUR + 1, grace="5m") == ["small"]


@pytest.mark.parametrize("is_free", [True, False])
def test_pods_of_one_kind_take_no_places_in_the_stead_of_another(is_free: bool) -> None:
    """Of a gang the plan counts one pod without a GPU and one with. If a filter refuses the first one, two with GPUs
    would be its minimum."""
    notes = {
        name: {ESTIMATE_ANNOTATION: estimate} for name, estimate in (("runs", "5h"), ("waits", "1h"), ("gang", "9h"))
    }
    on_n0: dict[str, Any] = {"node_selector": (("zone", "a"),)}
    port, runs = (HostPort(80),), podgroup("runs", 2, phase="Running", annotations=notes["runs"])
    held = [*pods("runs", 1, gpu=2, on="n0", start_time=0.0)]
    held += pods("runs", 1, first=1, on="n1", start_time=0.0, host_ports=() if is_free else port)
    waits = [podgroup("waits", 3, phase="Inqueue", annotations=notes["waits"]), *pods("waits", 3, gpu=1, **on_n0)]
    gang = [podgroup("gang", 2, phase="Inqueue", creation=60.0, annotations=notes["gang"])]
    gang += pods("gang", 1, host_ports=port, creation=60.0, node_selector=(("zone", "b"),))
    gang += pods("gang", 2, first=1, gpu=1, creation=60.0, role="worker", **on_n0)
    nodes = node("n0", cpu=16, gpu=4, labels={"zone": "a"}), node("n1", cpu=16, labels={"zone": "b"})
    # Two of four GPUs are free until 5 h, when the other gang needs three.
    binds = run(cluster(*nodes, runs, *held, *waits, *gang), policy(reservations=8), now=HOUR).binds
    assert binds.keys() == ({"ns/gang-0", "ns/gang-1"} if is_free else set())
