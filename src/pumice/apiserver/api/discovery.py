"""Discovery: versions, groups and resources, one by one or all together (aggregated discovery)."""

from __future__ import annotations

from pumice.apiserver.kinds.registry import Registry
from pumice.apiserver.kinds.resources import Resource
from pumice.model.manifest.reading.fields import Obj

#: The Kubernetes version whose API this server implements, in part.
KUBERNETES = ("1", "36", "v1.36.3")
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUB_VERBS = {
    "status": ["get", "patch", "update"],
    "scale": ["get", "patch", "update"],
    "ephemeralcontainers": ["get", "patch", "update"],
    "binding": ["create"],
    "eviction": ["create"],
}
_SUB_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}
#: Reviews, which are created and answered, and never stored.
WHO_AM_I = ["authentication.k8s.io", "v1", "selfsubjectreviews"]
REVIEWS = {"selfsubjectaccessreviews": "SelfSubjectAccessReview", "selfsubjectrulesreviews": "SelfSubjectRulesReview"}
REVIEW_GROUP = "authorization.k8s.io"
#: Groups whose kinds have the same names as those of others. A client resolves a bare name to the first group listed.
_BEHIND = frozenset({"scheduling.k8s.io", "scheduling.run.ai"})


def version() -> Obj:
    major, minor, git = KUBERNETES
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{git}+pumice",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "",
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
    }


def core_versions(address: str) -> Obj:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(registry: Registry) -> Obj:
    groups = [group(registry, name) for name in _named_groups(registry)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: Registry, name: str) -> Obj | None:
    """Return a group, or None if it does not exist."""
    versions = _named_groups(registry).get(name)
    if versions is None:
        return None
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": listed,
        "preferredVersion": listed[0],
    }


def resource_list(registry: Registry, group: str, version: str) -> Obj | None:
    """Return the resources of a version, or None if it does not exist."""
    found = [r for r in registry.resources() if (r.group, r.version) == (group, version)]
    reviews = REVIEWS.items() if (group, version) == (REVIEW_GROUP, "v1") else ()
    listed = [entry for resource in found for entry in _entries(resource)]
    listed += [_entry(plural, kind.lower(), False, kind, ["create"]) for plural, kind in reviews]
    if not listed:
        return None
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def aggregated(registry: Registry, named: bool, version: str) -> Obj:
    """Return aggregated discovery. ``named``: the named groups, else the core group. ``version`` of the format: v2 or
    v2beta1."""
    groups = _named_groups(registry) if named else {"": ["v1"]}
    items = [_group_entry(registry, name, versions) for name, versions in groups.items()]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _named_groups(registry: Registry) -> dict[str, list[str]]:
    found = {name: versions for name, versions in registry.groups().items() if name}
    return dict(sorted({**found, REVIEW_GROUP: ["v1"]}.items(), key=lambda item: (item[0] in _BEHIND, item[0])))


def _entries(resource: Resource) -> list[Obj]:
    main = _entry(resource.plural, _singular(resource), resource.namespaced, resource.kind, VERBS)
    if resource.short:
        main["shortNames"] = list(resource.short)
    if resource.categories:
        main["categories"] = list(resource.categories)
    return [main, *(_sub_entry(resource, sub) for sub in _subresources(resource))]


def _entry(name: str, singular: str, namespaced: bool, kind: str, verbs: list[str]) -> Obj:
    return {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs}


def _sub_entry(resource: Resource, sub: str) -> Obj:
    entry = _entry(f"{resource.plural}/{sub}", "", resource.namespaced, resource.kind, _SUB_VERBS[sub])
    if sub in _SUB_KINDS:
        group, version, kind = _SUB_KINDS[sub]
        entry |= {"kind": kind, "version": version} | ({"group": group} if group else {})
    return entry


def _subresources(resource: Resource) -> list[str]:
    return [*(["status"] if resource.status else []), *resource.others]


def _singular(resource: Resource) -> str:
    return resource.singular or resource.kind.lower()


def _group_entry(registry: Registry, name: str, versions: list[str]) -> Obj:
    listed = []
    for version in versions:
        found = [r for r in registry.resources() if (r.group, r.version) == (name, version)]
        resources = [_aggregated_entry(resource) for resource in found]
        if name == REVIEW_GROUP:
            resources += [
                _aggregated(p, k.lower(), k, name, version, "Cluster", ["create"]) for p, k in REVIEWS.items()
            ]
        listed.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": name, "creationTimestamp": None} if name else {}, "versions": listed}


def _aggregated(plural: str, singular: str, kind: str, group: str, version: str, scope: str, verbs: list[str]) -> Obj:
    return {
        "resource": plural,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "scope": scope,
        "singularResource": singular,
        "verbs": verbs,
    }


def _aggregated_entry(resource: Resource) -> Obj:
    scope = "Namespaced" if resource.namespaced else "Cluster"
    entry = _aggregated(
        resource.plural, _singular(resource), resource.kind, resource.group, resource.version, scope, VERBS
    )
    for key, names in (("shortNames", resource.short), ("categories", resource.categories)):
        if names:
            entry[key] = list(names)
    subresources = []
    for sub in _subresources(resource):
        group, version, kind = _SUB_KINDS.get(sub, (resource.group, resource.version, resource.kind))
        response = {"group": group, "version": version, "kind": kind}
        subresources.append({"subresource": sub, "responseKind": response, "verbs": _SUB_VERBS[sub]})
    if subresources:
        entry["subresources"] = subresources
    return entry
