"""What people call jobs that were made for pods without a PodGroup."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.answers.explanation import explain, find_job
from pumice.answers.world import Trials, World
from pumice.model.blockers import Behind, NotAdmitted, RoomReserved
from pumice.model.resources import Resource
from pumice.reasons.sentences import sentence
from pumice.reasons.shown_names import ShownNames
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF


def world() -> tuple[World, str]:
    """Return a node that a ReplicaSet fills without a PodGroup, with a job that waits, and the key of the first."""
    name = "podgroup-3f0c2a4e"
    (runs,) = pods(name, 1, cpu=4)
    runs = replace(runs, owner=("ReplicaSet", "web", "3f0c2a4e"), node_name="n0", phase="Running", start_time=900.0)
    (waits,) = pods("asks", 1, cpu=4)
    groups = [podgroup(name, 1, queue="q", phase="Running"), podgroup("asks", 1, queue="q", phase="Inqueue")]
    objects = [node("n0", cpu=4), replace(queue("q"), capability=Resource(milli_cpu=4_000.0)), *groups, runs, waits]
    return World(objects, policy_of(DEFAULT_CONF, builtin_registry()), 1_000.0, ("volcano",)), f"ns/{name}"


def test_sentences_name_the_owner_of_pods_without_a_podgroup_and_blockers_keep_its_key() -> None:
    found, key = world()
    shown = ShownNames(Trials(found, 0).base.outcome.tables)
    assert (shown.of(key), shown.of("ns/asks"), shown.of("ns/podgroup-gone")) == (
        "ns/web",
        "ns/asks",
        "ns/podgroup-gone",
    )
    reserved = RoomReserved(key, 2_000.0)
    assert key in sentence(reserved)
    assert shown.sentence(reserved).startswith("room is reserved for ns/web, ")
    assert shown.sentence(NotAdmitted((reserved,))) == shown.sentence(reserved)
    assert shown.named(Behind((key, "ns/asks"))) == Behind(("ns/web", "ns/asks"))


def test_a_way_out_names_the_owner_and_is_tried_by_the_key() -> None:
    found, key = world()
    ways = explain(found, "ns/asks").ways
    leaves = next(way for way in ways if way.losers == (key,))
    assert leaves.text == ("ns/web leaves",)
    assert leaves.changes == (f"--remove job/{key}",)


def test_a_job_is_found_by_what_people_call_it() -> None:
    found, key = world()
    assert find_job(found, "ns/web") == find_job(found, "web") == key
