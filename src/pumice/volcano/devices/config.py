"""Read the configuration of devices: how GPU models can be split, and the kinds of NPUs.

The input is Volcano's ``device-config.yaml``, decoded: a mapping with ``nvidia`` and ``vnpus``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from pumice.model.plain_words import kind_of
from pumice.volcano.devices.mig import INSTANCES_MAX, Geometry, Instance

#: Volcano's ConfigMap for it.
CONFIG_MAP_NAME, CONFIG_MAP_NAMESPACE = "volcano-vgpu-device-config", "kube-system"
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME, _NAMESPACE = re.compile(rf"{_LABEL}(\.{_LABEL})*"), re.compile(_LABEL)
_NAME_MAX = 253
# A configuration is written by hand; larger numbers are mistakes, and products of these stay exact.
_MEMORY_MAX, _LISTED_MAX, _FACTOR_MAX = 1 << 30, 64, 1 << 20


class DeviceConfigError(ValueError):
    """The configuration is invalid: where, what was found, and what was wanted."""


class Models(Struct, frozen=True):
    """How cards of some models can be split. A card belongs to a model if its type contains the model's name."""

    models: tuple[str, ...]
    geometries: tuple[Geometry, ...]


class Template(Struct, frozen=True):
    """A size in which a kind of NPU is shared. ``memory`` in MiB."""

    name: str
    memory: int


class NpuKind(Struct, frozen=True):
    """A kind of NPU. ``word``: its name in annotations. ``allocatable``, ``capacity``: MiB of a card. ``templates``:
    sorted by size."""

    word: str
    resource: str
    memory_resource: str
    allocatable: int
    capacity: int
    templates: tuple[Template, ...] = ()

    @property
    def core_resource(self) -> str:
        """The resource name for cores."""
        return f"{self.resource}-core"

    def template_for(self, memory: int) -> tuple[int, str]:
        """Return an amount of memory rounded up to a template, and the name of the template: "" for the whole card,
        (0, "") if it exceeds the card."""
        # Sorted by size, so the first that is large enough wastes least.
        for each in self.templates:
            if memory <= each.memory:
                return each.memory, each.name
        # More than the largest template means the whole card, of which only the allocatable part can be used.
        return (self.allocatable, "") if memory <= self.capacity else (0, "")


class DeviceConfig(Struct, frozen=True):
    """The configuration. ``memory_factor``: MiB of one unit of ``volcano.sh/vgpu-memory``."""

    models: tuple[Models, ...] = ()
    memory_factor: int = 1
    npus: tuple[NpuKind, ...] = ()

    def geometries_of(self, card_type: str) -> tuple[Geometry, ...]:
        """Return the ways to split a card, none if its model is not listed."""
        # The first that matches, in the order of the file: names are parts of types, so a special model can be listed
        # before a general one.
        return next((each.geometries for each in self.models if any(m in card_type for m in each.models)), ())


_310P = NpuKind(
    "Ascend310P",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-memory",
    21_527,
    24_576,
    (Template("vir01", 3072), Template("vir02", 6144), Template("vir04", 12_288)),
)
#: Used if the policy has no configuration. Source: Volcano's default configuration of devices.
DEFAULT = DeviceConfig(npus=(_310P,))


def config_map_problems(namespace: str, name: str, *, is_used: bool) -> Iterator[str]:
    """Yield problems with the arguments that name a ConfigMap. ``is_used``: its contents would matter."""
    of_name, of_namespace = (f"argument deviceshare.KnownGeometriesCM{part}" for part in ("Name", "Namespace"))
    bad_name = len(name) > _NAME_MAX or not _NAME.fullmatch(name)
    bad_namespace = not _NAMESPACE.fullmatch(namespace)
    if bad_name:
        yield f"{of_name}: found {name[:80]!r}, wanted the name of a ConfigMap"
    if bad_namespace:
        yield f"{of_namespace}: found {namespace[:80]!r}, wanted the name of a namespace"
    # The ConfigMap is not read. Another one than Volcano's was made to differ from the default, so ignoring it
    # silently would change decisions.
    is_own = (namespace, name) == (CONFIG_MAP_NAMESPACE, CONFIG_MAP_NAME)
    if is_used and not (is_own or bad_name or bad_namespace):
        argument = of_name if name != CONFIG_MAP_NAME else of_namespace
        what = "is not read: put its device-config.yaml under deviceshare.DeviceConfig"
        yield f"{argument}: the ConfigMap {namespace}/{name} {what}"


def read_device_config(given: object) -> DeviceConfig:
    """Read a decoded configuration; None gives the default.

    Raises: DeviceConfigError.
    """
    if given is None:
        return DEFAULT
    whole = _mapping(given, "deviceConfig")
    nvidia = _mapping(whole.get("nvidia"), "nvidia")
    models = tuple(
        _models(each, f"nvidia.knownMigGeometries[{i}]")
        for i, each in enumerate(_list(nvidia.get("knownMigGeometries"), "nvidia.knownMigGeometries"))
    )
    # Missing means 1: amounts are then in MiB.
    factor = _whole(nvidia, "gpuMemoryFactor", "nvidia", 1, _FACTOR_MAX)
    return DeviceConfig(models, max(1, factor), _npus(whole.get("vnpus")) if "vnpus" in whole else DEFAULT.npus)


def _models(given: object, where: str) -> Models:
    """Read how models can be split."""
    each = _mapping(given, where)
    names = tuple(_text_of(name, f"{where}.models") for name in _list(each.get("models"), f"{where}.models"))
    groups = _list(each.get("allowedGeometries"), f"{where}.allowedGeometries")
    return Models(names, tuple(_geometry(group, f"{where}.allowedGeometries[{i}]") for i, group in enumerate(groups)))


def _geometry(given: object, where: str) -> Geometry:
    """Read one way to split a card."""
    group = _mapping(given, where)
    found = tuple(
        _instance(each, f"{where}.geometries[{i}]")
        for i, each in enumerate(_list(group.get("geometries"), f"{where}.geometries"))
    )
    count = sum(each.count for each in found)
    # Instances in use are bits of one number, so their count is bounded.
    if count > INSTANCES_MAX:
        raise DeviceConfigError(f"{where}: found {count} instances, wanted at most {INSTANCES_MAX}")
    return Geometry(_text(group, "group", where), found)


def _instance(given: object, where: str) -> Instance:
    """Read instances of one size."""
    each = _mapping(given, where)
    return Instance(
        _text(each, "name", where),
        _whole(each, "memory", where, 0, _MEMORY_MAX),
        _whole(each, "count", where, 0, INSTANCES_MAX),
    )


def _npus(given: object) -> tuple[NpuKind, ...]:
    """Read a list of kinds, or a mapping whose ``configs`` is one."""
    where = "vnpus"
    if isinstance(given, Mapping):
        given, where = given.get("configs"), "vnpus.configs"
    return tuple(_npu(each, f"{where}[{i}]") for i, each in enumerate(_list(given, where)))


def _npu(given: object, where: str) -> NpuKind:
    """Read a kind of NPU."""
    each = _mapping(given, where)
    templates = [
        Template(
            _text(part, "name", f"{where}.templates[{i}]"),
            _whole(part, "memory", f"{where}.templates[{i}]", 0, _MEMORY_MAX),
        )
        for i, raw in enumerate(_list(each.get("templates"), f"{where}.templates"))
        for part in (_mapping(raw, f"{where}.templates[{i}]"),)
    ]
    return NpuKind(
        _text(each, "commonWord", where),
        _text(each, "resourceName", where),
        _text(each, "resourceMemoryName", where),
        _whole(each, "memoryAllocatable", where, 0, _MEMORY_MAX),
        _whole(each, "memoryCapacity", where, 0, _MEMORY_MAX),
        # A configuration may list templates in any order.
        tuple(sorted(templates, key=lambda template: template.memory)),
    )


def _mapping(given: object, where: str) -> Mapping[str, Any]:
    """Return a mapping, empty for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DeviceConfigError(f"{where}: found {kind_of(given)}, wanted a mapping")
    return given


def _list(given: object, where: str) -> list[Any]:
    """Return a list, empty for None."""
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > _LISTED_MAX:
        found = f"{len(given)} items" if isinstance(given, list) else kind_of(given)
        raise DeviceConfigError(f"{where}: found {found}, wanted a list of at most {_LISTED_MAX}")
    return given


def _text(given: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text at a key."""
    return _text_of(given.get(key), f"{where}.{key}")


def _text_of(given: object, where: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(given, str) or not given or len(given) > 253:
        raise DeviceConfigError(f"{where}: found {given!r:.80}, wanted a text")
    return given


def _whole(given: Mapping[str, Any], key: str, where: str, least: int, most: int) -> int:
    """Return the whole number at a key, or its smallest value if the key is missing."""
    value = given.get(key, least)
    # In Python, True is an int.
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise DeviceConfigError(f"{where}.{key}: found {value!r:.80}, wanted a whole number from {least} to {most}")
    return value
