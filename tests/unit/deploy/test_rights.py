"""The roles hold what the code asks an API server for: no right too few, and none too many."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from pumice.kube.api.kinds import (
    BIND_REQUESTS,
    COMPOSITE_POD_GROUPS,
    EVENTS,
    FOLLOWED,
    KAI_FOLLOWED,
    KAI_POD_GROUPS,
    KAI_QUEUES,
    LEASES,
    NATIVE_POD_GROUPS,
    NODE_SHARDS,
    POD_GROUPS,
    PODS,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    VOLUME_CLAIMS,
    VOLUMES_KIND,
    Kind,
)
from pumice.kube.controllers.kai_grouping import FOLLOWED as GROUPING_FOLLOWED
from pumice.kube.controllers.kinds import (
    CLAIMS,
    COMMANDS,
    CONFIG_MAPS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    LOOKED_UP,
    NETWORK_POLICIES,
    SECRETS,
    SERVICES,
    WATCHED_BY,
)
from pumice.kube.controllers.owner_kinds import DEPLOYMENTS, KARTAS, READ_FOR_KAI
from tests.unit.deploy.helm import render

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
Right = tuple[str, str, str]  # (group, resource, verb)


def rights(kind: Kind, *verbs: str, below: str = "") -> set[Right]:
    resource = f"{kind.plural}/{below}" if below else kind.plural
    return {(kind.group, resource, verb) for verb in verbs}


def followed(kinds: Iterable[Kind]) -> set[Right]:
    """What a reflector needs."""
    return {right for kind in kinds for right in rights(kind, "list", "watch")}


#: What is written of claims before a pod is bound.
CLAIMED = (
    rights(VOLUMES_KIND, "get", "update")  # kube/binding/volumes
    | rights(VOLUME_CLAIMS, "get", "patch")
    | rights(RESOURCE_CLAIMS, "get", "update", "create", "delete")  # kube/binding/claims
    | rights(RESOURCE_CLAIMS, "update", below="status")
    | rights(RESOURCE_CLAIMS, "update", below="binding")  # asked for by newer API servers where a status is written
)
#: What is asked about users: kube/scheduler/reviews.
REVIEWED = rights(TOKEN_REVIEWS, "create") | rights(SUBJECT_ACCESS_REVIEWS, "create")
#: Where the code asks for more than to follow a kind. A change there belongs here, and in the role.
SCHEDULER = (
    followed(FOLLOWED)
    | rights(PODS, "create", below="binding")  # kube/binding/bind
    | rights(PODS, "get")  # kube/binding/resync
    | rights(PODS, "create", below="eviction")  # kube/writers/evicting
    | rights(PODS, "delete")
    | rights(PODS, "patch")  # kube/writers/scheduling_gates
    | rights(PODS, "patch", below="status")  # kube/writers/evicting, kube/writers/pod_status
    | rights(EVENTS, "create", "patch")  # kube/writers/event_recorder: a repeated one is counted
    | rights(POD_GROUPS, "patch")  # kube/writers/statuses: by the subresource where the CRD has one
    | rights(POD_GROUPS, "patch", below="status")
    | rights(QUEUES, "patch", below="status")
    | rights(NODE_SHARDS, "patch", below="status")  # kube/scheduler/node_shards
    | rights(NATIVE_POD_GROUPS, "get")  # kube/binding/claims: names of claims that a group shares
    | rights(NATIVE_POD_GROUPS, "patch")  # kube/scheduler/predicting
    | rights(NATIVE_POD_GROUPS, "patch", below="status")
    | rights(COMPOSITE_POD_GROUPS, "patch")
    | rights(COMPOSITE_POD_GROUPS, "patch", below="status")
    | CLAIMED
    | REVIEWED
)
CONTROLLERS = (
    followed(kind for kinds in WATCHED_BY.values() for kind in kinds)
    | {right for kind in LOOKED_UP for right in rights(kind, "get")}  # kube/controllers/loop
    # kube/controllers/writes: a create that finds its name taken looks at who has it
    | rights(PODS, "get", "create", "patch", "delete")
    | rights(POD_GROUPS, "get", "create", "patch", "delete")
    | rights(QUEUES, "get", "create", "patch")
    | rights(QUEUES, "patch", below="status")
    | rights(JOBS, "get", "create", "delete")
    | {right for kind in (CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES) for right in rights(kind, "patch", below="status")}
    | {right for kind in (CRON_JOBS, JOB_FLOWS) for right in rights(kind, "update", below="finalizers")}
    | rights(JOBS, "patch", below="status")
    | rights(JOBS, "update", below="finalizers")  # asked for by an admission plugin, not by us
    | rights(COMMANDS, "delete")
    | {right for kind in (CONFIG_MAPS, SERVICES, CLAIMS, NETWORK_POLICIES) for right in rights(kind, "get", "create")}
    | rights(SECRETS, "create")  # runtime/controllers/job_ssh
    | rights(EVENTS, "create", "patch")  # kube/writers/event_recorder
    | rights(LEASES, "get")  # kube/controllers/leading
)
KAI_SCHEDULER = (
    followed(KAI_FOLLOWED)
    | CLAIMED
    | REVIEWED
    | {right for right in SCHEDULER if right[0] == ""}
    - rights(RESOURCE_QUOTAS, "list", "watch")
    - rights(PODS, "patch")
    | rights(KAI_POD_GROUPS, "patch")  # kube/writers/statuses: annotations
    | rights(KAI_POD_GROUPS, "patch", below="status")
    | rights(KAI_QUEUES, "patch", below="status")
    | rights(NATIVE_POD_GROUPS, "get")  # kube/binding/claims: names of claims that a group shares
    | rights(NATIVE_POD_GROUPS, "patch")  # kube/scheduler/predicting
    | rights(NATIVE_POD_GROUPS, "patch", below="status")
    | rights(COMPOSITE_POD_GROUPS, "patch")
    | rights(COMPOSITE_POD_GROUPS, "patch", below="status")
    | rights(BIND_REQUESTS, "get", "create", "delete")  # kube/binding/bind_requests
)
KAI_GROUPING = (
    followed(GROUPING_FOLLOWED)
    | {right for kind in READ_FOR_KAI for right in rights(kind, "get")}  # kube/controllers/kai_grouping
    | rights(KARTAS, "list")
    # kube/controllers/writes: a create that finds its name taken looks at who has it
    | rights(PODS, "patch")
    | rights(KAI_POD_GROUPS, "get", "create", "patch")
    | rights(KAI_QUEUES, "get", "create")
    | rights(EVENTS, "create", "patch")  # kube/writers/event_recorder
    | rights(DEPLOYMENTS, "get")  # kube/controllers/leading
)
LEADER = rights(LEASES, "get", "create", "update")


def granted(role: dict[str, Any]) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from ((group, resource, verb) for verb in rule["verbs"])


def roles(file: str = "base/rbac.yaml") -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / file).read_text())
    return {each["metadata"]["name"]: each for each in documents if each["kind"] in ("ClusterRole", "Role")}


def test_roles_are_what_the_code_asks_for() -> None:
    wanted = {"pumice-scheduler": SCHEDULER, "pumice-controllers": CONTROLLERS, "pumice-leader": LEADER}
    assert {name: set(granted(role)) for name, role in roles().items()} == wanted


def test_roles_under_kais_policy_are_what_the_code_asks_for() -> None:
    wanted = {
        "pumice-kai-scheduler": KAI_SCHEDULER,
        "pumice-kai-grouping": KAI_GROUPING,
        "pumice-kai-leader": LEADER,
        "pumice-kai-kind-defaults": rights(CONFIG_MAPS, "get"),  # kube/controllers/kai_grouping
        # kube/binding/gpu_reservations
        "pumice-kai-gpu-sharing": rights(PODS, "patch") | rights(CONFIG_MAPS, "create", "patch"),
        "pumice-kai-reservations": rights(PODS, "create"),
    }
    assert {name: set(granted(role)) for name, role in roles("kai/rbac.yaml").items()} == wanted


def test_nothing_is_granted_twice_or_wholesale() -> None:
    for name, role in (*roles().items(), *roles("kai/rbac.yaml").items()):
        found = list(granted(role))
        assert len(found) == len(set(found)), name
        assert not [right for right in found if "*" in right], name


def test_leases_are_named() -> None:
    """Only what must be: a name cannot be asked for when something is created."""
    named = [
        (rule.get("resourceNames"), rule["verbs"])
        for role in roles().values()
        for rule in role["rules"]
        if rule["resources"] == ["leases"]
    ]
    assert named == [(None, ["create"]), (["volcano"], ["get", "update"]), (["vc-controller-manager"], ["get"])]


def test_the_chart_grants_the_same() -> None:
    chart = {each["metadata"]["name"]: each for each in render(DEPLOY / "chart", "ns") if each["kind"].endswith("Role")}
    assert {name: role["rules"] for name, role in chart.items()} == {
        name: role["rules"] for name, role in roles().items()
    }


def test_the_chart_grants_the_same_under_kais_policy_and_nothing_of_volcanos() -> None:
    values = {"kai": {"enabled": True}}
    chart = [each for each in render(DEPLOY / "chart", "kai-scheduler", values) if each["kind"].endswith("Role")]
    found = {each["metadata"]["name"]: each["rules"] for each in chart}
    assert found == {name: role["rules"] for name, role in roles("kai/rbac.yaml").items()}
