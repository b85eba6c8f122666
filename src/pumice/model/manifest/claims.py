"""ResourceClaims and their templates from their decoded objects."""

from __future__ import annotations

from pumice.model.claims import ResourceClaim, ResourceClaimTemplate
from pumice.model.manifest.fields import Obj, at, name, table, tables, text, whole
from pumice.model.manifest.pods import namespace_of


def read_resource_claim(obj: Obj) -> ResourceClaim:
    metadata = table(obj, "metadata", "")
    devices = _devices(table(obj, "spec", ""), "spec")
    return ResourceClaim(namespace_of(metadata), name(metadata, "name", "metadata"), devices)


def read_resource_claim_template(obj: Obj) -> ResourceClaimTemplate:
    metadata = table(obj, "metadata", "")
    devices = _devices(table(table(obj, "spec", ""), "spec", "spec"), "spec.spec")
    return ResourceClaimTemplate(namespace_of(metadata), name(metadata, "name", "metadata"), devices)


def _devices(spec: Obj, path: str) -> tuple[tuple[str, int], ...]:
    """Devices by class. A request for the first of several that is available counts as its first; one for all devices
    of a class as one."""
    found: dict[str, int] = {}
    here = f"{at(path, 'devices')}.requests"
    for i, request in enumerate(tables(table(spec, "devices", path), "requests", at(path, "devices"))):
        where = f"{here}[{i}]"
        for asked in (table(request, "exactly", where), *tables(request, "firstAvailable", where)[:1], request):
            device_class = text(asked, "deviceClassName", where)
            if device_class:
                found[device_class] = found.get(device_class, 0) + whole(asked, "count", where, 1, 0)
                break
    return tuple(sorted(found.items()))
