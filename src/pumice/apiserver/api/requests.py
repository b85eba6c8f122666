"""What a request asks for: its path, its options, and the form of answer that the client accepts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from pumice.apiserver.bounds import check_value
from pumice.apiserver.kinds.registry import Registry
from pumice.apiserver.objects import Deletion, Options, Target
from pumice.apiserver.refusals import Refusal, bad_request, no_such_path
from pumice.model.manifest.reading.fields import Obj

_NAMESPACE_PARTS = ("status", "finalize")
_PARTS_OF_PROCESSES = ("log", "exec", "attach", "portforward")
_decode = msgspec.json.Decoder().decode


def target_of(registry: Registry, parts: list[str]) -> Target:
    """Return the target of a path. ``parts``: from ``api`` or ``apis`` on. Raises: Refusal 404."""
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in _NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0])
    if resource is None or len(rest) > 3 or not all(rest):
        raise no_such_path()
    name, subresource = (*rest[1:], "", "")[:2]
    if (namespace and not resource.namespaced) or (name and resource.namespaced and not namespace):
        raise no_such_path()
    if resource.table == "pods" and subresource in _PARTS_OF_PROCESSES:
        raise bad_request(f"pods and nodes are simulated here: {subresource} is not supported")
    known = (*resource.others, *(("status",) if resource.status else ()))
    if subresource and subresource not in known and not (rest[0] == "namespaces" and subresource == "finalize"):
        raise no_such_path()
    return Target(resource, namespace, name, subresource)


def body_of(raw: bytes) -> Obj:
    """Return a body. Raises: Refusal 400 if it is not a JSON object."""
    found = json_of(raw)
    if not isinstance(found, dict):
        raise bad_request("the body is not a JSON object")
    return found


def json_of(raw: bytes) -> object:
    """Return decoded JSON. Raises: Refusal 400, also if it is nested too deep; 413 if it is too large."""
    try:
        found = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None
    check_value(found, raw)
    return found


def options_of(query: Mapping[str, str], user_agent: str) -> Options:
    """Return the options of a write. Raises: Refusal 400."""
    unknown = query.get("fieldValidation") or "Warn"
    if unknown not in ("Strict", "Warn", "Ignore"):
        raise bad_request(f"fieldValidation: found {unknown[:40]!r}, wanted Strict, Warn or Ignore")
    return Options(
        dry_run=_dry_run(query.get("dryRun", "")),
        manager=(query.get("fieldManager") or user_agent.partition("/")[0])[:128],
        force=flag(query, "force"),
        unknown_fields=unknown,
    )


def deletion_of(query: Mapping[str, str], body: object) -> tuple[Deletion, bool]:
    """Return how to delete, and whether dependents should be kept. Raises: Refusal 400."""
    if not isinstance(body, dict):
        raise bad_request("the options of a deletion are an object")
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict) or not all(
        isinstance(preconditions.get(key) or "", str) for key in ("uid", "resourceVersion")
    ):
        raise bad_request("preconditions: wanted an object with texts as uid and resourceVersion")
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = number(query, "gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("gracePeriodSeconds: wanted a whole number")
    policy = query.get("propagationPolicy") or body.get("propagationPolicy") or "Background"
    if not isinstance(policy, str) or policy not in ("Background", "Foreground", "Orphan"):
        raise bad_request(f"propagationPolicy: found {str(policy)[:40]!r}, wanted Background, Foreground or Orphan")
    dry = query.get("dryRun") or body.get("dryRun") or ""
    if isinstance(dry, list):
        dry = ",".join(map(str, dry[:2]))
    how = Deletion(grace, preconditions.get("uid") or "", preconditions.get("resourceVersion") or "", _dry_run(dry))
    return how, policy == "Orphan"


def _dry_run(text: object) -> bool:
    if not isinstance(text, str) or text not in ("", "All"):
        raise bad_request(f"dryRun: found {str(text)[:40]!r}, wanted All")
    return bool(text)


def flag(query: Mapping[str, str], key: str) -> bool:
    return query.get(key, "").lower() in ("1", "true", "t")


def number(query: Mapping[str, str], key: str) -> int | None:
    """Return a whole number from 0, or None if it is not given. Raises: Refusal 400."""
    text = query.get(key)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise bad_request(f"{key}: found {text[:40]!r}, wanted a whole number")
    return int(text)


# -- forms


class Form(Struct, frozen=True):
    """A form of answer: plain JSON if ``as_`` is "", else that kind in that version."""

    as_: str = ""
    version: str = ""


PLAIN = Form()
_KNOWN = {
    ("Table", "meta.k8s.io", "v1"),
    ("PartialObjectMetadata", "meta.k8s.io", "v1"),
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"),
    ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"),
    ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1"),
}


def form_of(accept: str, *offered: str) -> Form:
    """Return the first form that the client accepts and that is offered. Raises: Refusal 406."""
    if not accept.strip():
        return PLAIN
    for entry in accept.split(","):
        media, *pairs = (part.strip() for part in entry.split(";"))
        if media not in ("application/json", "application/*", "*/*"):
            continue
        params = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        as_, version = params.get("as", ""), params.get("v", "")
        if not as_:
            return PLAIN
        if as_ in offered and (as_, params.get("g", ""), version) in _KNOWN:
            return Form(as_, version)
    raise Refusal(406, "NotAcceptable", "only the following media types are accepted: application/json")
