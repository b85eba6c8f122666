"""Checks of the function tables that need no scheduler: resources, pod requests, sub-job identities, arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from pumice.framework.plugin.plugin import Argument, read_arguments
from pumice.framework.plugin.policy_file import read_policy
from pumice.framework.plugin.registry import ActionSpec, Dialect, Registry
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.pod_request import pod_request
from pumice.model.quantity import INT64_MAX, INT64_MIN
from pumice.model.resources import Resource
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.model.workloads.subgroups import (
    SubJobKey,
    match_index,
    match_values,
    min_available,
    sub_job_id,
    topology_of,
)
from tests import resource_algebra as algebra
from tests.conformance.tables.table import Row, disagreement, table

ZERO, INFINITY = algebra.Missing.ZERO, algebra.Missing.INFINITY
_RESOURCE_FIELDS = {"MilliCPU", "Memory", "ScalarResources", "MaxTaskNum"}


# -- what the rows hold


def resource(raw: Row) -> Resource:
    """A recorded resource; an absent field is 0, no scalars are nil. Raises: ValueError for an unknown field."""
    if unknown := raw.keys() - _RESOURCE_FIELDS:
        raise ValueError(f"a resource has no {sorted(unknown)}")
    scalars = raw.get("ScalarResources")
    return Resource(
        float(raw.get("MilliCPU", 0)),
        float(raw.get("Memory", 0)),
        None if scalars is None else {name: float(amount) for name, amount in scalars.items()},
        raw.get("MaxTaskNum", 0),
    )


def maybe_resource(raw: Row | None) -> Resource | None:
    return None if raw is None else resource(raw)


def compared(found: Resource, wanted: Row) -> str | None:
    """Exact, but that the recording does not tell no scalars from an empty mapping of them."""
    want = resource(wanted)
    return (
        None
        if _comparable(found) == _comparable(want)
        else f"found {algebra.describe(found)}, wanted {algebra.describe(want)}"
    )


def _comparable(amount: Resource) -> tuple[float, float, dict[str, float], int]:
    return amount.milli_cpu, amount.memory, dict(amount.scalars or {}), amount.max_task_num


def named(found: tuple[bool, Collection[str]], wanted: bool, names: Collection[str]) -> str | None:
    """A filter_result with the names behind it, whose order in the recording is that of a Go map."""
    return disagreement((found[0], sorted(found[1])), (wanted, sorted(names)))


def selector(raw: Row | None) -> LabelSelector | None:
    """Return a label selector as it is, with unknown operators."""
    if raw is None:
        return None
    labels = [Requirement(key, "In", (value,)) for key, value in raw.get("matchLabels", {}).items()]
    expressions = [
        Requirement(each["key"], each["operator"], tuple(each.get("values", ())))
        for each in raw.get("matchExpressions", ())
    ]
    return LabelSelector((*labels, *expressions))


def topology(raw: Row | None) -> NetworkTopology | None:
    if raw is None:
        return None
    return NetworkTopology(raw.get("mode", ""), raw.get("highestTierAllowed"), raw.get("highestTierName", ""))


def policy(raw: Row) -> SubGroupPolicy:
    return SubGroupPolicy(
        raw.get("name", ""),
        topology(raw.get("networkTopology")),
        raw.get("subGroupSize"),
        raw.get("minSubGroups"),
        selector(raw.get("labelSelector")),
        tuple(raw.get("matchLabelKeys", ())),
    )


def both(row: Row) -> tuple[Resource, Resource]:
    return resource(row["resource1"]), resource(row["resource2"])


# -- arithmetic of resources


@table("api/TestAddResource.yaml")
def add(row: Row) -> str | None:
    a, b = both(row)
    return compared(a.add(b), row["expected"])


@table("api/TestSubResource.yaml")
def sub(row: Row) -> str | None:
    a, b = both(row)
    return compared(algebra.sub(a, b), row["expected"])


@table("api/TestSetMaxResource.yaml")
def set_max(row: Row) -> str | None:
    a, b = both(row)
    return compared(a.set_max(b), row["expected"])


@table("api/TestMinDimensionResourceZero.yaml", missing=ZERO)
@table("api/TestMinDimensionResourceInfinity.yaml", missing=INFINITY)
def min_dimension(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    return compared(algebra.min_dimension(a, b, missing), row["expected"])


@table("api/TestDiff.yaml", missing=ZERO)
@table("api/TestDiff-2.yaml", missing=INFINITY)
def diff(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    increased, decreased = algebra.diff(a, b, missing)
    return compared(increased, row["expectedIncreased"]) or compared(decreased, row["expectedDecreased"])


@table("api/TestResourceAddScalar.yaml")
def add_scalar(row: Row) -> str | None:
    return compared(resource(row["resource"]).add_scalar(row["scalarName"], row["scalarQuantity"]), row["expected"])


# -- reading resources


@table("api/TestNewResource.yaml")
def from_list(row: Row) -> str | None:
    return compared(Resource.from_list(row["resourceList"]), row["expected"])


@table("api/Test_ignoredDevicesList_Set_BasicUsage.yaml")
def ignored_devices(row: Row) -> str | None:
    ignored = {name for names in row.get("deviceLists", ()) for name in names}
    wanted = set(row.get("expectedIgnoredDevices", ()))
    listed = dict.fromkeys([*ignored, *wanted, "example.com/not-ignored"], 1)
    dropped = set(algebra.names(Resource.from_list(listed))) - set(algebra.names(Resource.from_list(listed, ignored)))
    return disagreement(dropped, wanted)


@table("api/TestResourceString.yaml")
def describe(row: Row) -> str | None:
    return disagreement(algebra.describe(resource(row["resource"])), row["expected"])


@table("api/TestIsZero.yaml")
def is_zero(row: Row) -> str | None:
    return disagreement(algebra.is_zero(resource(row["resource"]), row["resourceName"]), row.get("expected", False))


@table("api/TestIntersection.yaml")
def intersecting(row: Row) -> str | None:
    return disagreement(sorted(algebra.intersection(resource(row["r1"]), resource(row["r2"]))), sorted(row["want"]))


@table("api/TestIntersectionWithIgnoredScalarResources.yaml")
def intersecting_without_ignored(row: Row) -> str | None:
    found = algebra.intersection_without_ignored(resource(row["r1"]), resource(row["r2"]))
    return disagreement(sorted(found), sorted(row["want"]))


# -- comparing resources


@table("api/TestEqual.yaml")
def equal(row: Row) -> str | None:
    a, b = both(row)
    return disagreement(algebra.equal(a, b), row.get("expected", False))


@table("api/TestLess.yaml", missing=ZERO)
@table("api/TestLess-2.yaml", missing=INFINITY)
def less(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    return disagreement(algebra.less(a, b, missing), row.get("expected", False))


@table("api/TestLessEqual.yaml", missing=ZERO)
@table("api/TestLessEqual-2.yaml", missing=INFINITY)
def less_equal(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    return disagreement(algebra.less_equal(a, b, missing), row.get("expected", False))


@table("api/TestLessPartly.yaml", missing=ZERO)
@table("api/TestLessPartly-2.yaml", missing=INFINITY)
def less_partly(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    return disagreement(algebra.less_partly(a, b, missing), row.get("expected", False))


@table("api/TestLessEqualPartly.yaml", missing=ZERO)
@table("api/TestLessEqualPartly-2.yaml", missing=INFINITY)
def less_equal_partly(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    return disagreement(algebra.less_equal_partly(a, b, missing), row.get("expected", False))


@table("api/TestResource_LessEqualResource.yaml", missing=ZERO)
@table("api/TestResource_LessEqualResource-2.yaml", missing=INFINITY)
def less_equal_names(row: Row, missing: algebra.Missing) -> str | None:
    a, b = both(row)
    return named(algebra.less_equal_names(a, b, missing), not row["expected"], row["expected"])


@table("api/TestResource_GreaterPartly.yaml")
def greater_partly(row: Row) -> str | None:
    found = algebra.greater_partly(resource(row["child"]), resource(row["parent"]), INFINITY)
    return named(found, row.get("expectedExceeds", False), row["expectedResources"])


@table("api/TestLessEqualWithDimensionAndResourcesName.yaml")
def less_equal_with_dimension(row: Row) -> str | None:
    a, b = both(row)
    found = algebra.less_equal_with_dimension(a, b, maybe_resource(row.get("req")))
    return named(found, row.get("expectedFlag", False), row["expectedResourceNames"])


@table("api/TestLessEqualPartlyWithDimension.yaml", method=algebra.less_equal_partly_with_dimension)
@table(
    "api/TestLessEqualPartlyWithDimensionZeroFiltered.yaml",
    method=algebra.less_equal_partly_with_dimension_zero_filtered,
)
@table("api/TestGreaterPartlyWithDimension.yaml", method=algebra.greater_partly_with_dimension)
@table("api/TestGreaterPartlyWithRelevantDimensions.yaml", method=algebra.greater_partly_with_relevant_dimensions)
def partly_with_dimension(row: Row, method: Callable[..., tuple[bool, Collection[str]]]) -> str | None:
    found = method(resource(row["r"]), resource(row["rr"]), maybe_resource(row.get("req")))
    return named(found, row.get("wantBool", False), row["wantNames"])


# -- requests of pods


@table("api/TestGetPodResourceRequest.yaml")
def whole_request(row: Row) -> str | None:
    pod = row["pod"]
    return compared(pod_request(pod["spec"], pod.get("status")), row["expectedResource"])


@table("api/TestGetPodResourceWithoutInitContainers.yaml", wanted="expectedResource")
@table("api/TestGetPodResourceWithResize.yaml", wanted="expected")
def request_without_init(row: Row, wanted: str) -> str | None:
    pod = row["pod"]
    # Pumice has no function for this sum: it needs the request that admits a pod, which init containers are part of.
    request = pod_request({**pod["spec"], "initContainers": None}, pod.get("status"))
    scalars = {name: amount for name, amount in (request.scalars or {}).items() if name != "pods"}
    return compared(Resource(request.milli_cpu, request.memory, scalars), row[wanted])


# -- sub-jobs and topology


@table(
    "api/TestGetSubJobMatchValues_Basic.yaml",
    "api/TestGetSubJobMatchValues_Boundary.yaml",
    "api/TestGetSubJobMatchValues_Error.yaml",
)
def sub_job_match_values(row: Row) -> str | None:
    labels = row["pod"].get("metadata", {}).get("labels", {})
    wanted = row.get("expected")
    return disagreement(match_values(policy(row["policy"]), labels), None if wanted is None else tuple(wanted))


@table("api/TestSubJobInfo_getPodSubJobID.yaml")
def sub_job_identity(row: Row) -> str | None:
    args = row["args"]
    return disagreement(sub_job_id(args["job"], args["policy"], tuple(args["matchValues"])), row["want"])


@table("api/TestNewSubJobInfo.yaml")
def new_sub_job(row: Row) -> str | None:
    """Of a job with policies: there a sub-job without one, the default one, needs a single pod."""
    args, want = row["args"], row["want"]
    own = policy(args["policy"]) if "policy" in args else None
    key = SubJobKey(args["gid"], args["uid"], match_index(tuple(args.get("matchValues", ()))), own)
    group = PodGroup("", args["job"], "", sub_groups=(own or SubGroupPolicy("another"),))
    return disagreement(
        (key.gid, key.id, group.name, key.match_index, min_available(key, group), topology_of(key, group)),
        (
            want["GID"],
            want["UID"],
            want["Job"],
            want.get("MatchIndex", 0),
            want["MinAvailable"],
            topology(want.get("NetworkTopology")),
        ),
    )


@table("api/TestConvertToHardTopology.yaml")
def convert_to_hard(row: Row) -> str | None:
    before = topology(row.get("networkTopology"))
    # The domains of a session read a soft topology as a hard one in place; only this table wants it as a value.
    after = before
    if before is not None and before.mode == "soft":
        after = replace(before, mode="hard", highest_tier=row["maxTier"], highest_tier_name="")
    found = (after != before, after.mode if after else "", after.highest_tier if after else None)
    return disagreement(found, (row.get("wantChanged", False), row.get("wantMode", ""), row.get("wantTier")))


@table("api/TestSubJobInfo_IsHardTopologyMode.yaml")
def sub_job_is_hard(row: Row) -> str | None:
    return _hard_with_tier(row.get("fields", {}), row.get("expectedHard", False), row)


@table("api/TestHasTopologyHardConstrain.yaml")
def job_is_hard(row: Row) -> str | None:
    group = row["jobInfo"].get("PodGroup", {}).get("PodGroup", {})
    return _hard_with_tier(group.get("spec", {}), row.get("expectedHasHard", False), row)


def _hard_with_tier(owner: Row, hard: bool, row: Row) -> str | None:
    required = topology(owner.get("networkTopology"))
    found = (required.is_hard, required.highest_tier or 0) if required else (False, 0)
    return disagreement(found, (hard, row.get("expectedTier", 0)))


@table("api/TestSubJobInfo_IsSoftTopologyMode.yaml")
def sub_job_is_soft(row: Row) -> str | None:
    required = topology(row.get("fields", {}).get("networkTopology"))
    return disagreement(required is not None and required.mode == "soft", row.get("expectedHard", False))


# -- numbers and arguments


@table("api/TestSaturatingAdd.yaml", operation=operator.add)
@table("api/TestSaturatingMul.yaml", operation=operator.mul)
def saturating(row: Row, operation: Callable[[int, int], int]) -> str | None:
    # Python's integers do not overflow, so Pumice needs the bounds of an int64 only where a result leaves it.
    found = operation(row.get("a", 0), row.get("b", 0))
    return disagreement(min(max(found, INT64_MIN), INT64_MAX), row.get("want", 0))


@table("util/TestGetMinInt.yaml")
def least(row: Row) -> str | None:
    return disagreement(min(row["vals"], default=0), row.get("result", 0))


@table("framework/TestArgumentsGetBool.yaml", kind="bool", absent=False)
@table("framework/TestArgumentsGetFloat64.yaml", kind="float", absent=0.0)
@table("framework/TestArgumentsGetInt.yaml", kind="int", absent=0)
@table("framework/TestArgumentsGetString.yaml", kind="str", absent="")
def argument(row: Row, kind: str, absent: Any) -> str | None:
    key, default = row["key"], row.get("baseValue", absent)
    values, _ = read_arguments({key: Argument(key, kind, default)}, row["arg"], "conf")
    return disagreement(values.get(key, default), row.get("expectValue", absent))


@table("framework/TestGetArgOfActionFromConf.yaml")
def arguments_of_action(row: Row) -> str | None:
    entries = row["configurations"]
    names = {name: Argument(name, "Any", None) for entry in entries for name in entry["Arguments"]}
    actions = {
        name: ActionSpec(name, _nothing, names) for name in (row["action"], *(entry["Name"] for entry in entries))
    }
    conf = {
        "actions": row["action"],
        "configurations": [{"name": entry["Name"], "arguments": entry["Arguments"]} for entry in entries],
    }
    read = read_policy(conf, Registry({"volcano": Dialect(actions)}))
    return disagreement(dict(read.actions[0].arguments), row.get("expectedArguments", {}))


def _nothing(ssn: object) -> None:
    """An action that does nothing."""
