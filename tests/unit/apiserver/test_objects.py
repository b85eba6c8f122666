"""Creating, changing and deleting objects: what is kept, what goes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion, Options
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.worlds import cluster, create, found, group, pod, queue, target


@pytest.fixture
def world() -> Cluster:
    return cluster()


def change(world: Cluster, table: str, name: str, patch: Any, part: str = "") -> dict[str, Any]:
    where = target(world, table, name, part=part)
    return world.objects.change(where, lambda old: {**old, **patch}, Options())


def refusal(act: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refused:
        act()
    return refused.value.code, refused.value.reason


# -- create


def test_a_new_object_gets_what_the_server_adds(world: Cluster) -> None:
    made = create(world, pod("a"))
    metadata = made["metadata"]
    assert (metadata["namespace"], metadata["creationTimestamp"]) == ("default", "2027-01-15T08:00:00Z")
    assert metadata["resourceVersion"] == str(world.store.version)
    assert metadata["uid"].startswith("uid-")
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made == found(world, "pods", "default/a")


def test_generated_names_differ(world: Cluster) -> None:
    template = pod("")
    template["metadata"] = {"generateName": "a-"}
    names = {create(world, template)["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


def test_defaults_of_a_definition_are_filled_in(world: Cluster) -> None:
    assert create(world, group("g", minMember=2))["spec"] == {"minMember": 2, "queue": "default"}


def test_limits_are_requests_where_none_are_given(world: Cluster) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    made = create(world, pod("a", containers=[{"name": "c", "image": "i", "resources": resources}]))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_the_priority_is_that_of_the_class(world: Cluster) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}
    normal = {**urgent, "metadata": {"name": "normal"}, "value": 3, "globalDefault": True}
    assert create(world, pod("z"))["spec"]["priority"] == 0
    create(world, urgent)
    create(world, normal)
    assert create(world, pod("a", priorityClassName="urgent"))["spec"]["priority"] == 7
    made = create(world, pod("b"))["spec"]
    assert (made["priority"], made["priorityClassName"]) == (3, "normal")
    assert create(world, pod("c", priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000
    assert refusal(lambda: create(world, pod("d", priorityClassName="none"))) == (403, "Forbidden")


@pytest.mark.parametrize(
    ("obj", "namespace", "reports"),
    [
        pytest.param(pod("a"), "nowhere", (404, "NotFound"), id="no such namespace"),
        pytest.param(pod("A b"), "default", (422, "Invalid"), id="no name"),
        pytest.param(pod("a" * 300), "default", (422, "Invalid"), id="a name too long"),
        pytest.param(pod(""), "default", (422, "Invalid"), id="an empty name"),
        pytest.param(pod("a", labels={"x": "not a value!"}), "default", (422, "Invalid"), id="label value"),
        pytest.param(pod("a", labels={"x": 1}), "default", (422, "Invalid"), id="a label that is no string"),
        pytest.param(pod("a", annotations={"x y": ""}), "default", (422, "Invalid"), id="annotation key"),
        pytest.param(
            pod("a", annotations={"x": "y" * 300_000}), "default", (422, "Invalid"), id="annotations too long"
        ),
        pytest.param(pod("a", containers=[]), "default", (422, "Invalid"), id="no containers"),
        pytest.param(pod("a", containers=[{"name": "c"}]), "default", (422, "Invalid"), id="no image"),
        pytest.param(pod("a", containers="x"), "default", (422, "Invalid"), id="containers of a wrong type"),
        pytest.param(pod("a", containers=[3]), "default", (422, "Invalid"), id="a container of a wrong type"),
        pytest.param(pod("a", tolerations=[{"key": 3}]), "default", (422, "Invalid"), id="what cannot be read"),
        pytest.param(queue("q", weight="heavy"), "", (422, "Invalid"), id="a schema's type"),
        pytest.param({**queue("q"), "metadata": []}, "", (400, "BadRequest"), id="metadata of a wrong type"),
        pytest.param(
            {**pod("a"), "metadata": {"name": "a", "namespace": "b"}}, "default", (400, "BadRequest"), id="ns"
        ),
    ],
)
def test_what_is_not_created(world: Cluster, obj: dict[str, Any], namespace: str, reports: tuple[int, str]) -> None:
    before = world.store.version
    assert refusal(lambda: create(world, obj, namespace)) == reports
    assert world.store.version == before


def test_every_wrong_field_is_named(world: Cluster) -> None:
    with pytest.raises(Refusal) as refused:
        create(world, pod("a", containers=[{"name": "c"}, {"name": "c", "image": "i"}]))
    causes = refused.value.status()["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["spec.containers[0].image", "spec.containers[1].name"]


def test_a_name_is_given_once(world: Cluster) -> None:
    create(world, queue("q"))
    assert refusal(lambda: create(world, queue("q"))) == (409, "AlreadyExists")


def test_a_dry_run_keeps_nothing(world: Cluster) -> None:
    made = create(world, queue("q"), dry_run=True)
    assert made["metadata"]["name"] == "q"
    assert found(world, "queues.scheduling.volcano.sh", "q") is None


def test_unknown_fields(world: Cluster) -> None:
    warned: list[str] = []
    made = create(world, group("a", minMembr=2), warnings=warned)
    assert "minMembr" not in made["spec"]
    assert warned == ['unknown field "spec.minMembr"']
    assert refusal(lambda: create(world, group("b", minMembr=2), unknown_fields="Strict")) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}, "acts on deployments", id="idle"
        ),
        pytest.param(pod("a"), "schedulerName is default-scheduler, not volcano", id="not for us"),
        pytest.param(pod("a", schedulerName="volcano"), "", id="for us"),
        pytest.param(pod("a", nodeName="n"), "", id="bound already"),
        pytest.param(group("g", queue="nope"), "queue nope does not exist", id="no such queue"),
        pytest.param(group("g", queue="there"), "", id="a queue"),
        pytest.param(group("g"), "", id="the default queue, which is to come"),
    ],
)
def test_what_will_not_do_what_it_seems_to_is_kept_with_a_warning(
    world: Cluster, obj: dict[str, Any], said: str
) -> None:
    create(world, queue("there"))
    warned: list[str] = []
    create(world, obj, warnings=warned)
    assert len(warned) == bool(said) and said in "".join(warned)


# -- change


def test_an_older_version_is_a_conflict(world: Cluster) -> None:
    made = create(world, queue("q", weight=1))
    change(world, "queues.scheduling.volcano.sh", "q", {"spec": {"weight": 2}})
    old = {"metadata": {**made["metadata"]}}
    assert refusal(lambda: change(world, "queues.scheduling.volcano.sh", "q", old)) == (409, "Conflict")


def test_another_uid_is_a_conflict(world: Cluster) -> None:
    made = create(world, queue("q"))
    other = {"metadata": {**made["metadata"], "uid": "another"}}
    assert refusal(lambda: change(world, "queues.scheduling.volcano.sh", "q", other)) == (409, "Conflict")


def test_what_changes_nothing_is_no_new_version(world: Cluster) -> None:
    create(world, queue("q", weight=2))
    before = world.store.version
    change(world, "queues.scheduling.volcano.sh", "q", {"spec": {"weight": 2}})
    change(world, "queues.scheduling.volcano.sh", "q", {"status": {"state": "Open"}})
    assert world.store.version == before + 0


def test_status_is_written_by_its_path_only(world: Cluster) -> None:
    create(world, queue("q", weight=2))
    table = "queues.scheduling.volcano.sh"
    made = change(world, table, "q", {"status": {"state": "Open"}, "spec": {"weight": 9}}, part="status")
    assert (made["status"], made["spec"]["weight"]) == ({"state": "Open"}, 2)
    made = change(world, table, "q", {"status": {"state": "Closed"}, "spec": {"weight": 3}})
    assert (made["status"], made["spec"]["weight"]) == ({"state": "Open"}, 3)


def test_a_kind_without_a_status_path_takes_both_at_once(world: Cluster) -> None:
    create(world, group("g", minMember=1))
    table = "podgroups.scheduling.volcano.sh"
    made = change(world, table, "g", {"status": {"phase": "Running"}, "spec": {"minMember": 2}})
    assert (made["status"]["phase"], made["spec"]["minMember"]) == ("Running", 2)


def test_generation_counts_changes_of_the_spec(world: Cluster) -> None:
    table = "queues.scheduling.volcano.sh"
    assert create(world, queue("q", weight=1))["metadata"]["generation"] == 1
    assert change(world, table, "q", {"spec": {"weight": 2}})["metadata"]["generation"] == 2
    assert change(world, table, "q", {"status": {"state": "Open"}}, part="status")["metadata"]["generation"] == 2


def test_what_the_server_wrote_stays(world: Cluster) -> None:
    made = create(world, queue("q"))
    theirs = {"name": "q", "creationTimestamp": "1999-01-01T00:00:00Z", "generation": 77, "labels": {"a": "b"}}
    after = change(world, "queues.scheduling.volcano.sh", "q", {"metadata": theirs})["metadata"]
    assert after["labels"] == {"a": "b"}
    assert {k: after[k] for k in ("uid", "creationTimestamp", "generation")} == {
        k: made["metadata"][k] for k in ("uid", "creationTimestamp", "generation")
    }


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        pytest.param({"containers": [{"name": "c", "image": "i:2"}]}, True, id="image"),
        pytest.param({"tolerations": [{"key": "k", "operator": "Exists"}]}, True, id="one more toleration"),
        pytest.param({"nodeName": "n"}, False, id="node"),
        pytest.param({"schedulingGates": [{"name": "g"}]}, False, id="a gate more"),
        pytest.param({"schedulerName": "other"}, False, id="scheduler"),
    ],
)
def test_what_may_change_in_a_pod(world: Cluster, spec: dict[str, Any], allowed: bool) -> None:
    made = create(world, pod("a"))
    if "containers" in spec:
        spec = {"containers": [{**made["spec"]["containers"][0], "image": "i:2"}]}
    if "tolerations" in spec:
        spec = {"tolerations": [*made["spec"]["tolerations"], *spec["tolerations"]]}
    patch = {"spec": {**made["spec"], **spec}}
    if allowed:
        change(world, "pods", "a", patch)
    else:
        assert refusal(lambda: change(world, "pods", "a", patch)) == (422, "Invalid")


# -- delete


def test_deleted_at_once(world: Cluster) -> None:
    create(world, queue("q"))
    answer = world.objects.delete(target(world, "queues.scheduling.volcano.sh", "q"), Deletion())
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert found(world, "queues.scheduling.volcano.sh", "q") is None


def test_finalizers_hold_an_object(world: Cluster) -> None:
    table = "queues.scheduling.volcano.sh"
    held = queue("q")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    create(world, held)
    going = world.objects.delete(target(world, table, "q"), Deletion())
    assert going["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:00Z"
    assert world.objects.delete(target(world, table, "q"), Deletion()) == going
    change(world, table, "q", {"metadata": {**going["metadata"], "finalizers": []}})
    assert found(world, table, "q") is None


def test_a_pod_without_a_node_goes_at_once_and_one_with_takes_its_time(world: Cluster) -> None:
    create(world, pod("a"))
    create(world, pod("b", nodeName="n", terminationGracePeriodSeconds=60))
    assert world.objects.delete(target(world, "pods", "a"), Deletion())["kind"] == "Pod"
    going = world.objects.delete(target(world, "pods", "b"), Deletion())
    assert going["metadata"]["deletionTimestamp"] == "2027-01-15T08:01:00Z"
    assert world.objects.delete(target(world, "pods", "b"), Deletion(grace_s=90)) == going
    assert world.objects.delete(target(world, "pods", "b"), Deletion(grace_s=0))["kind"] == "Pod"
    assert found(world, "pods", "default/b") is None


@pytest.mark.parametrize("how", [Deletion(uid="another"), Deletion(version="1")], ids=["uid", "version"])
def test_preconditions(world: Cluster, how: Deletion) -> None:
    create(world, queue("q"))
    where = target(world, "queues.scheduling.volcano.sh", "q")
    assert refusal(lambda: world.objects.delete(where, how)) == (409, "Conflict")


def test_what_is_not_there_is_404(world: Cluster) -> None:
    with pytest.raises(Refusal, match=r'queues.scheduling.volcano.sh "q" not found'):
        world.objects.get(target(world, "queues.scheduling.volcano.sh", "q"))


def test_namespaces_of_the_system_stay(world: Cluster) -> None:
    assert refusal(lambda: world.objects.delete(target(world, "namespaces", "default"), Deletion()))[0] == 403


def test_a_definition_brings_its_kind_and_takes_it_along(world: Cluster) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    made = create(world, definition)
    assert {c["type"]: c["status"] for c in made["status"]["conditions"]}["Established"] == "True"
    create(world, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}})
    world.objects.delete(
        target(world, "customresourcedefinitions.apiextensions.k8s.io", "things.example.com"), Deletion()
    )
    assert world.registry.find("example.com", "v1", "things") is None
    assert found(world, "things.example.com", "t") is None
    definition["metadata"] = {"name": "other.example.com"}
    assert refusal(lambda: create(world, definition)) == (422, "Invalid")
