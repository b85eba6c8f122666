"""Estimate the usage of pods that are too young to be measured, from the arguments of the usage plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from pumice.columns.dtypes import F64
from pumice.model.plain_words import kind_of
from pumice.model.pod import PodSpec
from pumice.model.quantity import QuantityError, duration_or, milli_value, whole_value
from pumice.volcano.scorers.usage_load import best_effort_use, estimated_use, risk_factor

# Volcano's default for ``metrics.interval``: a pod that started less than one interval ago is in no measurement yet.
INTERVAL_S = 30.0
THRESHOLD = 80
_MIB = 1 << 20
# Bounded, so that no estimate becomes infinite.
_FACTOR_MAX, _AMOUNT_MAX = 1000.0, 1e15


class Estimator(Struct, frozen=True):
    """Arguments of the estimate. Ratios are 0 to 1. ``be_cpu`` in milli-cores and ``be_mem`` in bytes: usage of a
    best-effort pod."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    be_cpu: float = 250.0
    be_mem: float = 200.0 * _MIB

    @classmethod
    def read(cls, given: object) -> Estimator:
        """Read the argument; invalid values get their default."""
        return cls(**{name: value for name, value in _read(given) if value is not None})

    def of(self, spec: PodSpec | None) -> list[list[float]]:
        """Return the request, the limit, and the best-effort usage of a pod, each as CPU and memory. Shape (3, 2)."""
        # A free row of the table of classes; it needs a value, since all rows are one array.
        if spec is None:
            return [[0.0, 0.0]] * 3
        # Such a pod has neither request nor limit to estimate by, so its usage is an argument.
        if spec.qos == "BestEffort":
            return [[0.0, 0.0], [0.0, 0.0], [self.be_cpu, self.be_mem]]
        asked, limit = spec.request, spec.limit
        return [[asked.milli_cpu, asked.memory], [limit.milli_cpu, limit.memory], [0.0, 0.0]]

    def use(self, base: F64, load: F64) -> F64:
        """Return the estimated usage of pods, given ``of`` of them, on nodes with this load. Shapes (…, 3, 2), (…,) ->
        (…, 2)."""
        factor = risk_factor(load, self.risk_threshold, self.risk_factor)[..., None]
        asked = estimated_use(base[..., 0, :], base[..., 1, :], self.request_ratio, self.burst_ratio, factor)
        return asked + best_effort_use(base[..., 2, :], factor)


def percent(thresholds: object, name: str) -> float:
    """Return the threshold of a resource."""
    found = thresholds.get(name) if isinstance(thresholds, Mapping) else None
    # ``type`` and not ``isinstance``: true would otherwise be a threshold of 1 %.
    return float(found) if type(found) is int and 0 <= found <= 100 else float(THRESHOLD)


def interval_of(metrics: Mapping[str, Any]) -> float:
    """Return the seconds between two measurements in the policy."""
    found = duration_or(metrics.get("interval"), INTERVAL_S)
    # An interval of 0 would make every pod old enough at once.
    return found if found > 0 else INTERVAL_S


_RANGES = {
    "request_ratio": (0.0, 1.0),
    "burst_ratio": (0.0, 1.0),
    "risk_threshold": (0.0, 1.0),
    "risk_factor": (1.0, _FACTOR_MAX),
}


def _read(given: object) -> Iterator[tuple[str, float | None]]:
    """Each known part that is there, None where it cannot be used."""
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name in _RANGES:
            low, high = _RANGES[name]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            yield name, float(value) if is_number and low <= value <= high else None
        elif name in ("be_cpu", "be_mem"):
            yield name, _amount(name, value)


def _amount(name: str, value: Any) -> float | None:
    if type(value) is int:
        # A number without a unit is in MiB for memory and in milli-cores for CPU.
        found: int = value * (_MIB if name == "be_mem" else 1)
    else:
        try:
            found = milli_value(value) if name == "be_cpu" else whole_value(value)
        except (QuantityError, TypeError, ValueError):
            return None
    return float(found) if 0 <= found <= _AMOUNT_MAX else None


# -- what is wrong


def threshold_problems(thresholds: object) -> Iterator[str]:
    """Yield a message for each invalid threshold."""
    if thresholds is not None and not isinstance(thresholds, Mapping):
        yield f"argument thresholds: found {kind_of(thresholds)}, wanted a mapping with cpu and mem"
    for name, value in thresholds.items() if isinstance(thresholds, Mapping) else ():
        if name not in ("cpu", "mem"):
            yield f"argument thresholds: found {str(name)[:80]!r}, wanted cpu or mem"
        elif type(value) is not int or not 0 <= value <= 100:
            yield f"argument thresholds.{name}: found {value!r:.80}, wanted a whole number from 0 to 100"


def estimator_problems(estimator: object) -> Iterator[str]:
    """Yield a message for each invalid part of the argument."""
    if estimator is not None and not isinstance(estimator, Mapping):
        yield f"argument estimator: found {kind_of(estimator)}, wanted a mapping"
        return
    known = dict(_read(estimator))
    for name, value in (estimator or {}).items():
        if name not in known:
            wanted = ", ".join((*_RANGES, "be_cpu", "be_mem"))
            yield f"argument estimator: found {str(name)[:80]!r}, wanted one of {wanted}"
        elif known[name] is None:
            low, high = _RANGES.get(name, (0, 0))
            wanted = f"a number from {low:g} to {high:g}" if name in _RANGES else "an amount"
            yield f"argument estimator.{name}: found {value!r:.80}, wanted {wanted}"
