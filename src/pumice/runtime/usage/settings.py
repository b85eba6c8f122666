"""Settings of the measured load of nodes: the section ``metrics`` of a policy file. Source: Volcano's format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from pumice.model.plain_words import kind_of
from pumice.model.quantity import duration_or_none, parse_duration

PROMETHEUS, ELASTICSEARCH = "prometheus", "elasticsearch"
ADAPTOR, METRICS_SERVER = "prometheus_adaptor", "metrics_server"
TYPES = (PROMETHEUS, ADAPTOR, ELASTICSEARCH, METRICS_SERVER)
#: Types that the API server answers, which need no address.
OF_API_SERVER = (ADAPTOR, METRICS_SERVER)
INTERVAL_S, INTERVAL_MIN_S = 30.0, 1.0
_ADDRESS_MAX = 2048


class SourceSettings(Struct, frozen=True):
    """``type``: one of ``TYPES``, "" for none. ``address``: a URL. ``verify``: its certificate must be valid."""

    type: str = ""
    address: str = ""
    interval_s: float = INTERVAL_S
    verify: bool = True
    index: str = "metricbeat-*"
    host_field: str = "host.hostname"
    username: str = ""
    password: str = ""

    @classmethod
    def read(cls, metrics: Mapping[str, Any]) -> SourceSettings:
        """Return the settings in the section. If invalid, no program is asked."""
        if any(True for _ in source_problems(metrics)):
            return cls()
        own = {name: metrics[key] for key, name in _TEXTS.items() if key in metrics}
        interval = max(parse_duration(str(metrics.get("interval") or "30s")), INTERVAL_MIN_S)
        return cls(**own, interval_s=interval, verify=not _flag(metrics.get("tls.insecureSkipVerify")))


_TEXTS = {
    "type": "type",
    "address": "address",
    "elasticsearch.index": "index",
    "elasticsearch.hostnameFieldName": "host_field",
    "elasticsearch.username": "username",
    "elasticsearch.password": "password",
}


def source_problems(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each part that cannot be used. Passwords are not shown."""
    for key in _TEXTS:
        if not isinstance(metrics.get(key, ""), str):
            yield f"{key}: found {kind_of(metrics[key])}, wanted a text"
            return
    kind = metrics.get("type", "")
    if kind and kind not in TYPES:
        yield f"type: found {kind[:80]!r}, wanted one of {', '.join(TYPES)}"
    if kind in TYPES and kind not in OF_API_SERVER:
        yield from _address_problems(metrics.get("address", ""))
    index = metrics.get("elasticsearch.index", "metricbeat-*")
    if not index or len(index) > _ADDRESS_MAX or set(index) & set("/?#\r\n"):
        yield "elasticsearch.index: wanted the name of an index"
    if duration_or_none(str(metrics.get("interval") or "30s")) is None:
        yield f"interval: found {metrics['interval']!r:.80}, wanted a duration such as 30s"


def _address_problems(address: str) -> Iterator[str]:
    wanted = "wanted http:// or https://, a host, and no user, query or fragment"
    try:
        parts = urlsplit(address) if len(address) <= _ADDRESS_MAX and address.isprintable() else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        yield f"address: found {address[:80]!r}, {wanted}"
    elif parts.username is not None or parts.query or parts.fragment:
        yield f"address: {wanted}"


def _flag(value: Any) -> bool:
    return value is True or str(value).lower() in ("true", "1", "t")
