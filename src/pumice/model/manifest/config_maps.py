"""Decode ConfigMaps."""

from __future__ import annotations

from pumice.model.config_map import ConfigMap
from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import Obj, name, table


def read_config_map(obj: Obj) -> ConfigMap:
    """Return a ConfigMap without its contents. Raises: FieldError."""
    metadata = table(obj, "metadata", "")
    return ConfigMap(namespace_of(metadata), name(metadata, "name", "metadata"))
