"""Decode a ``flow.volcano.sh`` JobFlow: which Jobs wait for which, and how often they are retried.

Source: Volcano's JobFlow, its webhook, and its design of retries.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pumice.model.manifest.job_fields import check_dependencies, check_order
from pumice.model.manifest.reading.fields import (
    FieldError,
    Obj,
    choice,
    maybe_table,
    table,
    tables,
    text,
    texts,
    whole,
    wrong,
)
from pumice.model.quantity import DurationError, parse_duration

#: Jobs of one flow. Bounded, because a tenant writes the flow.
FLOWS_MAX = 1_000
_RETRIES_MAX = 100
_NAME_MAX = 63  # the name of a Job is a label of its pods
_BASE_S, _MOST_S = 30.0, 300.0
#: Lists of a probe that name addresses, which are not supported.
_ADDRESS_PROBES = ("httpGetList", "tcpSocketList")


class Retry(Struct, frozen=True):
    """How often a Job that has failed is created again, and when. ``most``: retries at most. ``base_s``: seconds before
    the first one. ``doubles``: each waits twice as long as the one before, ``cap_s`` at most. ``always``: a Job that
    has completed is created again, too."""

    most: int = 0
    base_s: float = _BASE_S
    cap_s: float = _MOST_S
    doubles: bool = True
    always: bool = False

    def delay_s(self, tried: int) -> float:
        """Return how long to wait before the next retry, after a number of retries."""
        return min(self.base_s * 2.0 ** min(tried, 64), self.cap_s) if self.doubles else self.base_s


class Flow(Struct, frozen=True):
    """A Job from the JobTemplate with its name. ``targets``: names of the flows that it waits for, all of them or
    ``any_target``, until they have completed, or until their tasks have reached phases: ``task_phases``, pairs of a
    task and its phase. ``patch``: what is changed in the spec of the template."""

    name: str
    targets: tuple[str, ...] = ()
    any_target: bool = False
    task_phases: tuple[tuple[str, str], ...] = ()
    patch: Obj = {}
    retry: Retry = Retry()


class JobFlow(Struct, frozen=True):
    """Jobs that wait for each other. ``deletes``: they are deleted when all have completed."""

    name: str
    flows: tuple[Flow, ...]
    deletes: bool = False


def read_job_flow(obj: Obj) -> JobFlow:
    """Return the decoded flow. Raises: FieldError for invalid ones, including Jobs that wait for each other."""
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    name = text(metadata, "name", "metadata")
    items = tables(spec, "flows", "spec")
    if len(items) > FLOWS_MAX:
        raise FieldError("spec.flows", f"{len(items)} flows", f"at most {FLOWS_MAX}")
    retry = _retry(spec, "spec", Retry())
    flows = tuple(_flow(item, f"spec.flows[{i}]", name, retry) for i, item in enumerate(items))
    check_dependencies(((flow.name, flow.targets) for flow in flows), "spec.flows", "dependsOn.targets")
    check_order(((flow.name, flow.targets) for flow in flows), "spec.flows")
    deletes = choice(spec, "jobRetainPolicy", "spec", ("retain", "delete"), "retain") == "delete"
    return JobFlow(name, flows, deletes)


def _flow(item: Obj, path: str, flow_name: str, retry: Retry) -> Flow:
    name = text(item, "name", path)
    if not name:
        raise wrong(item, "name", path, "the name of a JobTemplate")
    if len(flow_name) + 1 + len(name) > _NAME_MAX:
        raise wrong(item, "name", path, f"one that is with the flow's name at most {_NAME_MAX - 1} characters long")
    depends = table(item, "dependsOn", path)
    path_of_probe = f"{path}.dependsOn.probe"
    probe = table(depends, "probe", f"{path}.dependsOn")
    for listed in _ADDRESS_PROBES:
        if probe.get(listed):
            raise FieldError(
                f"{path_of_probe}.{listed}",
                "addresses to ask",
                "taskStatusList: HTTP probes are not supported",
            )
    phases = tables(probe, "taskStatusList", path_of_probe)
    place = f"{path_of_probe}.taskStatusList"
    return Flow(
        name=name,
        targets=tuple(dict.fromkeys(texts(depends, "targets", f"{path}.dependsOn"))),
        any_target=choice(depends, "strategy", f"{path}.dependsOn", ("all", "any"), "all") == "any",
        task_phases=tuple((text(each, "taskName", place), text(each, "phase", place)) for each in phases),
        patch=table(table(item, "patch", path), "spec", f"{path}.patch"),
        retry=_retry(item, path, retry),
    )


def _retry(obj: Obj, path: str, default: Retry) -> Retry:
    """Return a retry policy."""
    found = maybe_table(obj, "retryPolicy", path)
    if found is None:
        return default
    path = f"{path}.retryPolicy"
    policy = choice(found, "policy", path, ("OnFailure", "Never", "Always"), "OnFailure")
    backoff, place = table(found, "backoff", path), f"{path}.backoff"
    doubles = choice(backoff, "type", place, ("Exponential", "Constant"), "Exponential") == "Exponential"
    return Retry(
        most=0 if policy == "Never" else whole(found, "maxRetries", path, 0, 0, _RETRIES_MAX),
        base_s=_seconds(backoff, "baseDelay", place, _BASE_S),
        cap_s=_seconds(backoff, "maxDelay", place, _MOST_S),
        doubles=doubles,
        always=policy == "Always",
    )


def _seconds(obj: Obj, key: str, path: str, default: float) -> float:
    written = text(obj, key, path)
    if not written:
        return default
    try:
        return max(parse_duration(written), 0.0)
    except DurationError:
        raise wrong(obj, key, path, "a duration such as 1h30m") from None


def patched(spec: Any, patch: Any) -> Any:
    """Return a template's spec with a flow's patch. Objects are merged, and so are items of lists that have names; all
    else is replaced."""
    if isinstance(spec, dict) and isinstance(patch, dict):
        return {**spec, **{key: patched(spec.get(key), value) for key, value in patch.items()}}
    if not (_are_named(spec) and _are_named(patch)):
        return patch
    by_name = {each["name"]: each for each in patch}
    kept = [patched(each, by_name.pop(each["name"], {})) for each in spec]
    return [*kept, *by_name.values()]


def _are_named(items: Any) -> bool:
    return isinstance(items, list) and all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in items
    )
