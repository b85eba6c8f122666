"""A reserved gang with a hard topology has room within one domain, and others may go to all others."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.blockers import StartReserved
from pumice.model.workloads.gang import SUB_GROUP_LABEL, Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import NetworkTopology, SubGroupPolicy
from pumice.ours.reservations.domains import DOMAINS_MAX
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import cluster, hypernode, node, run
from tests.unit.ours.test_reserve import HOUR, job

RACK = "example.com/rack"


def policy(**arguments: Any) -> Policy:
    reserve = {"name": "ours/reserve", "arguments": {"after": "0s", **arguments}}
    others = ("gang", "predicates", "network-topology-aware")
    plugins = [reserve, *({"name": name} for name in others)]
    return read_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())


def two_racks(*jobs: list[Any]) -> Store:
    """Two racks of two nodes of 4 cores. A job runs on the first node of each: until 10 h, and until 5 h."""
    nodes = [node(f"n{i}", cpu=4, labels={RACK: f"r{i // 2}"}) for i in range(4)]
    racks = [hypernode(f"r{i}", 1, [f"n{2 * i}", f"n{2 * i + 1}"]) for i in range(2)]
    running = job("runs0", 1, "10h", on="n0"), job("runs1", 1, "5h", on="n2")
    return cluster(*nodes, *racks, *(each for one in (*running, *jobs) for each in one))


def within_rack(name: str, *, native: bool, count: int = 2, estimate: str = "1h") -> list[Any]:
    """A gang that must be in one rack: a group of Kubernetes', or one with a hard topology of Volcano's."""
    group, *members = job(name, count, estimate)
    if native:
        gang = Gang(topology=TopologyConstraint("", RACK))
        return [replace(group, gang=gang, native=NativeGroup("scheduling.k8s.io/v1beta1")), *members]
    return [replace(group, topology=NetworkTopology("hard", 1)), *members]


def outcome(found: Store, **arguments: Any) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the starts that are said, and where pods go."""
    ran = run(found, policy(**arguments), now=HOUR)
    assert not ran.outcome.faults, ran.outcome.faults
    said = {
        entry.subject.removeprefix("ns/"): entry.finding.start
        for entry in ran.outcome.entries
        if isinstance(entry.finding, StartReserved)
    }
    return said, {pod.removeprefix("ns/"): on for pod, on in ran.binds.items()}


@pytest.mark.parametrize("reservations", [1, 8])
@pytest.mark.parametrize("native", [True, False])
def test_a_gang_starts_when_one_domain_has_room(native: bool, reservations: int) -> None:
    # Two nodes are free now, one in each rack. Rack 1 is free at 5 h.
    said, binds = outcome(two_racks(within_rack("gang", native=native)), reservations=reservations)
    assert said == {"gang": 5 * HOUR} and binds == {}


@pytest.mark.parametrize("count", [2, 3])
def test_a_topology_that_no_plugin_keeps_binds_nothing(count: int) -> None:
    plugins = [{"name": "ours/reserve", "arguments": {"after": "0s"}}, {"name": "gang"}, {"name": "predicates"}]
    without = read_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())
    late = [job(f"late{i}", 1, "9d", 60.0 + i) for i in range(2)]
    ran = run(two_racks(within_rack("gang", native=False, count=count), *late), without, now=HOUR)
    said = [entry.finding.start for entry in ran.outcome.entries if isinstance(entry.finding, StartReserved)]
    # Two nodes are free now, one in each rack, and a third one at 5 h: a later job may have neither.
    expected = (["ns/gang-0", "ns/gang-1"], []) if count == 2 else ([], [5 * HOUR])
    assert (sorted(ran.binds), said) == expected


@pytest.mark.parametrize("native", [True, False])
def test_a_gang_without_a_topology_starts_at_once(native: bool) -> None:
    assert outcome(two_racks(job("gang", 2, "1h")))[1].keys() == {"gang-0", "gang-1"}
    assert outcome(two_racks(within_rack("gang", native=native, count=3))) == ({}, {})


@pytest.mark.parametrize("reservations", [1, 8])
@pytest.mark.parametrize("native", [True, False])
def test_others_go_to_other_domains(native: bool, reservations: int) -> None:
    late = [job(f"late{i}", 1, "9d", 60.0 + i) for i in range(2)]
    found = two_racks(within_rack("gang", native=native), *late)
    assert outcome(found, reservations=reservations)[1] == {"late0-0": "n1"}


def test_room_in_several_domains_is_kept_from_one_job() -> None:
    gangs = [within_rack(name, native=False, estimate="8h") for name in ("a", "b")]
    found = two_racks(*gangs, job("late", 1, "9d", 60.0), job("short", 1, "3h", 90.0))
    # Rack 1 is for one gang from 5 h on, and rack 0 for the other one from 10 h on.
    said, binds = outcome(found, reservations=2)
    assert said == {"a": 5 * HOUR, "b": 10 * HOUR} and binds.keys() == {"short-0"}


def test_a_job_that_ends_in_time_goes_to_its_domain() -> None:
    jobs = job("late", 1, "9d", 60.0), job("short", 1, "3h", 90.0)
    said, binds = outcome(two_racks(within_rack("gang", native=True), *jobs))
    assert said == {"gang": 5 * HOUR} and binds == {"late-0": "n1", "short-0": "n3"}


def test_places_in_the_domain_that_are_spared_may_be_taken() -> None:
    more = node("n4", cpu=8, labels={RACK: "r1"})
    late = [job(f"late{i}", 1, "9d", 60.0 + i) for i in range(5)]
    found = two_racks([more], within_rack("gang", native=True, count=3), job("runs2", 1, "8h", on="n4"), *late)
    # At 8 h rack 1 has four places, of which one is to spare; and rack 0 has one now.
    said, binds = outcome(found)
    assert said == {"gang": 5 * HOUR}
    assert len(binds) == 1 and set(binds.values()) == {"n1"}


def test_the_number_of_domains_is_bounded() -> None:
    nodes = [node(f"n{i:03}", cpu=4, labels={RACK: f"r{i // 2:03}"}) for i in range(2 * DOMAINS_MAX + 20)]
    running = [job(f"runs{i}", 1, f"{500 - i}h", on=f"n{2 * i:03}") for i in range(DOMAINS_MAX + 10)]
    found = cluster(*nodes, *(each for one in running for each in one), *within_rack("gang", native=True))
    # Of domains of one size the first are planned.
    assert outcome(found)[0] == {"gang": (500 - DOMAINS_MAX + 1) * HOUR}


@pytest.mark.parametrize("reservations", [1, 8])
def test_a_gang_that_starts_in_another_domain_than_planned_takes_no_room_of_others(reservations: int) -> None:
    """Both racks have room for the gang. The fuller one suits it better, where another gang is to start at 1.5 h."""
    racks = [hypernode(f"r{i}", 1, [f"n{i}"]) for i in range(2)]
    nodes = [node(f"n{i}", cpu=16, labels={RACK: f"r{i}"}) for i in range(2)]
    others = job("runs", 1, "90m", on="n1"), job("there", 4, "1h", 60.0, node_selector=((RACK, "r1"),))
    jobs = within_rack("gang", native=False), *others
    said, binds = outcome(cluster(*nodes, *racks, *(each for one in jobs for each in one)), reservations=reservations)
    # The start of the other gang is said in the next cycle, when it is decided where this one goes.
    assert binds == {"gang-0": "n0", "gang-1": "n0"} and said == {}


def in_parts(name: str, sizes: tuple[int, ...], *, within: bool = True, native: bool = False) -> list[Any]:
    """A gang of sub-groups of these sizes, each of which must be in one rack if they are ``within`` racks."""
    group, *members = job(name, sum(sizes), "1h")
    labels = [f"part{i}" for i, size in enumerate(sizes) for _ in range(size)]
    members = [
        replace(pod, labels={**pod.labels, "part": at, SUB_GROUP_LABEL: at})
        for pod, at in zip(members, labels, strict=True)
    ]
    if native:
        rack = TopologyConstraint("", RACK) if within else None
        parts = [SubGroup(f"part{i}", size, topology=rack) for i, size in enumerate(sizes)]
        tree = NativeGroup("scheduling.k8s.io/v1beta1", is_tree=True)
        return [replace(group, gang=Gang(sub_groups=tuple(parts)), native=tree), *members]
    topology = NetworkTopology("hard", 1) if within else None
    one = SubGroupPolicy("part", topology, sizes[0], len(sizes), match_label_keys=("part",))
    return [replace(group, sub_groups=(one,)), *members]


@pytest.mark.parametrize("reservations", [1, 8])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("sizes", "within", "start"),
    [
        ((1, 1), True, None),  # one node is free in each rack now
        ((2,), True, 5),
        ((2,), False, None),
        ((2, 2), True, 10),
        ((1, 1, 1), True, 5),
        ((2, 1), False, 5),
    ],
)
def test_a_gang_of_sub_groups_starts_when_domains_have_room_for_each(
    sizes: tuple[int, ...], within: bool, start: int | None, native: bool, reservations: int
) -> None:
    said, binds = outcome(two_racks(in_parts("gang", sizes, within=within, native=native)), reservations=reservations)
    assert said == ({} if start is None else {"gang": start * HOUR})
    assert len(binds) == (sum(sizes) if start is None else 0)


@pytest.mark.parametrize("native", [True, False])
def test_sub_groups_that_never_fit_or_are_unlike_keep_no_room(native: bool) -> None:
    # A rack has two nodes; and where the first of unlike sub-groups goes, the second may need its place.
    for sizes in ((3,), (2, 1)):
        assert outcome(two_racks(in_parts("gang", sizes, native=native)))[0] == {}


def test_nodes_in_no_domain_take_no_sub_group() -> None:
    apart = [node(f"apart{i}", cpu=4) for i in range(4)]
    assert outcome(two_racks(apart, in_parts("gang", (2,))))[0] == {"gang": 5 * HOUR}


def test_others_leave_the_sub_groups_of_a_gang_their_domains() -> None:
    late, short = job("late", 1, "9d", 60.0), job("short", 1, "3h", 90.0)
    said, binds = outcome(two_racks(in_parts("gang", (2, 2)), late, short))
    assert said == {"gang": 10 * HOUR} and binds.keys() == {"short-0"}


def test_places_that_no_whole_sub_group_can_use_do_not_count() -> None:
    """At 5 h four nodes are free, of which rack 1 has three: room for one sub-group of two, and not for two."""
    more = node("n4", cpu=4, labels={RACK: "r1"})
    racks = [hypernode("r0", 1, ["n0", "n1"]), hypernode("r1", 1, ["n2", "n3", "n4"])]
    nodes = [node(f"n{i}", cpu=4, labels={RACK: f"r{i // 2}"}) for i in range(4)]
    running = job("runs0", 1, "10h", on="n0"), job("runs1", 1, "5h", on="n2")
    found = cluster(*nodes, more, *racks, *(each for one in (*running, in_parts("gang", (2, 2))) for each in one))
    assert outcome(found)[0] == {"gang": 10 * HOUR}
