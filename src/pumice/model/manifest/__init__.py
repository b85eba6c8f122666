"""Kubernetes objects, as JSON decodes them, into the values of ``model``. ``Decoder().decode(obj)`` is the way in."""

from pumice.model.manifest.decoder import SUPPORTED_KINDS, Decoder, Reading, Value
from pumice.model.manifest.reading.fields import ManifestError, UnsupportedKind

__all__ = ["SUPPORTED_KINDS", "Decoder", "ManifestError", "Reading", "UnsupportedKind", "Value"]
