"""The resources that pages show, and amounts in the units of people."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import CPU, F64, MEMORY, ResourceAxis
from pumice.reasons.words import per_unit

#: Resources that pages show a column of: more would not fit beside each other.
RESOURCES_MAX = 6
#: What pages show of a text that tenants chose or that was made of such.
TEXT_MAX = 300


class ResourceColumn(Struct, frozen=True):
    """A resource: ``cpu``, ``memory`` or the name of a device, with the unit of its amounts."""

    name: str
    unit: str


class PageUnits:
    """The resources that are shown, and amounts in the units of people."""

    def __init__(self, axis: ResourceAxis) -> None:
        devices = [name for name in axis.offered if "/" in name and not name.startswith("attachable-volumes")]
        # GPUs before others, because they are what users look for.
        devices.sort(key=lambda name: (not name.endswith("gpu"), name))
        names = ["cpu", "memory", *devices[: RESOURCES_MAX - 2]]
        self._columns = [axis.column[name] for name in names]
        self._scale = np.array([per_unit(name) for name in names])
        units = {CPU: "cores", MEMORY: "GiB"}
        self.columns = tuple(
            ResourceColumn(name, units.get(column, "devices"))
            for name, column in zip(names, self._columns, strict=True)
        )

    def __call__(self, amounts: F64) -> F64:
        """Return amounts of the core (…, R) in the units of people (…, resources)."""
        found: F64 = amounts[..., self._columns] / self._scale
        return found
