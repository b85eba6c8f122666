"""Gangs of kinds that have no rule of their own, as a Karta of that kind describes them.

A Karta (``kartas.run.ai``) says of which components a kind consists, where their scale is, and which pods belong to
them. Source: KAI pod-grouper, plugin ``karta``; run-ai/karta, ``CalculateSubtreeScale``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.runtime.controllers.kai.paths import PathError, values_at
from pumice.runtime.controllers.kai.plan import GangPlan, NoGang, check_sub_groups, named
from pumice.runtime.controllers.writes import count_or, leaving, meta, part, parts

KARTA_API = "run.ai/v1alpha1"
_INSTRUCTIONS = "optimizationInstructions"
#: Components above one another. A Karta may have as many components as there may be sub-groups.
_DEPTH_MAX = 64


def described_kind(karta: Obj) -> tuple[str, str] | None:
    """Return apiVersion and kind of the objects that a Karta describes, None if it describes no gangs of any."""
    of = part(karta, "spec", "structureDefinition", "rootComponent", "kind")
    group, version, kind = (of.get(key) for key in ("group", "version", "kind"))
    gangs = part(karta, "spec", _INSTRUCTIONS, "gangScheduling")
    if leaving(karta) or not (gangs.get("podGroup") or gangs.get("podGroups")):
        return None
    if not isinstance(version, str) or not isinstance(kind, str) or not isinstance(group, str | None):
        return None
    return f"{group}/{version}" if group else version, kind


def karta_for(top: Obj, kartas: Iterable[Obj]) -> Obj | None:
    """Return the Karta that describes an object, None if there is none, or more than one."""
    kind = str(top.get("apiVersion")), str(top.get("kind"))
    found = [each for each in kartas if described_kind(each) == kind]
    return found[0] if len(found) == 1 else None


def karta_gang(pod: Obj, top: Obj, karta: Obj) -> GangPlan:
    """Return the gang of a pod. Raises: NoGang."""
    structure = _Structure(karta, top)
    gangs = part(karta, "spec", _INSTRUCTIONS, "gangScheduling")
    try:
        if gangs.get("podGroup"):
            return _of_components(pod, structure, part(gangs, "podGroup"))
        return _by_keys(pod, structure, parts(gangs, "podGroups"))
    except PathError as error:
        raise NoGang(f"{named(karta)}: {error}") from None


def _of_components(pod: Obj, structure: _Structure, wanted: Obj) -> GangPlan:
    """Return a sub-group for each component that is named, of which all are needed."""
    listed = parts(wanted, "subGroups")
    check_sub_groups(len(listed), structure.top)
    names = [str(each.get("componentName")) for each in listed]
    # A PodGroup cannot have two sub-groups of one name, and each look is at all components below one.
    if len({name.lower() for name in names}) < len(names):
        raise NoGang(
            f"{structure.where}: found a component in two subGroups, wanted each in one: {', '.join(names)[:80]}"
        )
    subs = []
    for name, each in zip(names, listed, strict=True):
        scale = structure.scale(name)
        if not scale:
            raise NoGang(f"{structure.where}: component {name[:80]}: found no scale, wanted one in its scaleDefinition")
        subs.append(SubGroup(name.lower(), scale, "", _place(part(each, "topology"), structure.where)))
    member = next((name.lower() for name in names if structure.is_in(pod, name)), "")
    return GangPlan(
        sum(each.min_member for each in subs) or structure.scale(structure.root) or 1,
        tuple(subs),
        min_sub_group=len(subs) or None,
        member=member,
        name=_name(structure.top, [wanted.get("name")]),
        topology=_place(part(wanted, "topology"), structure.where),
    )


def _by_keys(pod: Obj, structure: _Structure, groups: list[Obj]) -> GangPlan:
    """Return the gang of all pods with equal keys, in the older form: the nearest component that a group names."""
    members = {str(each.get("componentName")): each for group in groups for each in parts(group, "members")}
    own = structure.component_of(pod)
    found = next((each for each in structure.up_from(own) if each in members), None)
    if found is None:
        raise NoGang(f"{structure.where}: pod {meta(pod).get('name')}: found no member of a group with its component")
    if members[found].get("filters"):
        raise NoGang(f"{structure.where}: component {found[:80]}: found filters, wanted none: they are not evaluated")
    keys = []
    for path in members[found].get("groupByKeyPaths") or ():
        values = values_at(str(path), pod)
        if len(values) != 1 or values[0] in ("", None):
            raise NoGang(
                f"{structure.where}: {str(path)[:80]} of pod {meta(pod).get('name')}: found {len(values)} values"
            )
        keys.append(values[0])
    return GangPlan(structure.scale(found) or 1, name=_name(structure.top, keys))


class _Structure:
    """The components of one object, as a Karta describes them. They may own one another in a circle, so none is looked
    at again below itself."""

    def __init__(self, karta: Obj, top: Obj) -> None:
        definition = part(karta, "spec", "structureDefinition")
        root = part(definition, "rootComponent")
        self.where, self.top, self.root = named(karta), top, str(root.get("name"))
        children = parts(definition, "childComponents")
        check_sub_groups(len(children), karta)
        self._components = {str(each.get("name")): each for each in (*children, root)}
        self._below: dict[str, list[str]] = {}
        for name in self._components:
            if name != self.root:
                self._below.setdefault(self._owner_of(name), []).append(name)
        self._has_scales = any(each.get("scaleDefinition") for each in self._components.values())

    def scale(self, name: str, seen: frozenset[str] = frozenset()) -> int:
        """Return how many pods a component has with those below it, by their scales, or if no component has one, by
        how many have pods. Raises: NoGang, PathError."""
        component = self._components.get(name)
        if component is None:
            raise NoGang(f"{self.where}: found component {name[:80]!r}, wanted one of its structureDefinition")
        if name in seen:
            return 0
        self._check_depth(seen)
        below = sum(self.scale(each, seen | {name}) for each in self._below.get(name, ()))
        if not self._has_scales:
            return self._instances(component) if component.get("specDefinition") else below
        own = self._own_scale(part(component, "scaleDefinition"))
        return own * below if own and below else own or below

    def _check_depth(self, above: frozenset[str]) -> None:
        """Raise NoGang below so many components: how deep they are is up to the user, and Python's calls are not."""
        if len(above) >= _DEPTH_MAX:
            raise NoGang(f"{self.where}: found components more than {_DEPTH_MAX} deep, wanted at most that")

    def _own_scale(self, scale: Obj) -> int:
        """Return the sum over instances: the minimum where it is above 0, else the number of replicas."""
        wanted, least = (
            [count_or(each, 0) for each in values_at(path, self.top)] if isinstance(path := scale.get(key), str) else []
            for key in ("replicasPath", "minReplicasPath")
        )
        most = max(len(wanted), len(least))
        pairs = zip(wanted + [0] * (most - len(wanted)), least + [0] * (most - len(least)), strict=True)
        return sum(minimum or replicas for replicas, minimum in pairs)

    def _instances(self, component: Obj) -> int:
        path = component.get("instanceIdPath")
        return len(values_at(path, self.top)) if isinstance(path, str) else 1

    def is_in(self, pod: Obj, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Return True if a pod is of a component or of one below it. Raises: NoGang, PathError."""
        if name in seen:
            return False
        self._check_depth(seen)
        return self._selects(name, pod) or any(
            self.is_in(pod, each, seen | {name}) for each in self._below.get(name, ())
        )

    def component_of(self, pod: Obj) -> str:
        """Return the component that selects a pod, else the only one that has pods, else the root."""
        found = [name for name in self._components if self._selects(name, pod)]
        with_pods = [name for name, each in self._components.items() if each.get("specDefinition")]
        return found[0] if found else with_pods[0] if len(with_pods) == 1 else self.root

    def up_from(self, name: str) -> list[str]:
        """Return a component and those that own it, upwards."""
        found: list[str] = []
        while name in self._components and name not in found:
            found.append(name)
            name = self._owner_of(name)
        return found

    def _owner_of(self, name: str) -> str:
        """Return the component above another one: the root, if none is named."""
        return str(self._components[name].get("ownerRef") or self.root)

    def _selects(self, name: str, pod: Obj) -> bool:
        selector = part(self._components.get(name, {}), "podSelector", "componentTypeSelector")
        path, value = selector.get("keyPath"), selector.get("value")
        if not isinstance(path, str):
            return False
        found = values_at(path, pod)
        return value in found if value is not None else bool(found)


def _place(topology: Obj, where: str) -> TopologyConstraint | None:
    if not topology:
        return None
    name, required, preferred = (
        str(topology.get(key) or "") for key in ("topologyName", "requiredTopologyLevel", "preferredTopologyLevel")
    )
    if not name or not (required or preferred):
        raise NoGang(f"{where}: found a topology, wanted topologyName and a required or preferred level")
    return TopologyConstraint(name, required, preferred)


def _name(top: Obj, keys: list[Any]) -> str:
    return "-".join(("pg", str(meta(top).get("uid", "")), *(str(each) for each in keys))).lower()
