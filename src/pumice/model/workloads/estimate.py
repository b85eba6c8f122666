"""How long a job is expected to run, as its user or an upper bound says. This is not its true duration.

Sources, the first that is readable counts: the annotation ``pumice.dev/estimate``; ``activeDeadlineSeconds`` of its
pods; the longest execution time for Kueue; the time limit for Slinky. Each is read from the PodGroup, else from the
pods. Kueue: pkg/controller/constants (MaxExecTimeSecondsLabel). Slinky: slurm-bridge, annotation of a job's time limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Protocol

from pumice.model.pod import Pod
from pumice.model.quantity import DurationError, parse_days
from pumice.model.workloads.podgroup import PodGroup

ESTIMATE_ANNOTATION = "pumice.dev/estimate"
KUEUE_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"  # a label there; an annotation is accepted too
SLINKY_MINUTES = "slurmjob.slinky.slurm.net/timelimit"
ESTIMATE_KEYS = (ESTIMATE_ANNOTATION, KUEUE_SECONDS, SLINKY_MINUTES)

#: Bounds of an estimate. A tenant writes it, and the shortest goes first: so it is at least a second. Beyond a year it
#: says nothing that a plan could use.
ESTIMATE_MIN_S, ESTIMATE_MAX_S = 1.0, 366 * 86_400.0

_UNITS_S = {KUEUE_SECONDS: 1, SLINKY_MINUTES: 60}
# Bounded before it is parsed; the bounds of an estimate are far below.
_DIGITS_MAX = 12


class Labelled(Protocol):
    """An object with labels and annotations."""

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...


class EstimateError(ValueError):
    """A text is not a usable estimate: found, wanted."""


@lru_cache(maxsize=16_384)
def parse_estimate(key: str, text: str) -> float:
    """Return the seconds that the value of one of ESTIMATE_KEYS says.

    Raises: EstimateError.
    """
    # Other schedulers' keys hold plain numbers, each in a unit of its own.
    unit = _UNITS_S.get(key)
    if unit is None:
        try:
            found = parse_days(text)
        except DurationError as error:
            raise EstimateError(str(error)) from None
    elif text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX:
        found = float(int(text) * unit)
    else:
        raise EstimateError(f"found {text[:80]!r}, wanted a whole number of {'seconds' if unit == 1 else 'minutes'}")
    if not ESTIMATE_MIN_S <= found <= ESTIMATE_MAX_S:
        raise EstimateError(f"found {text[:80]!r}, wanted 1s to {ESTIMATE_MAX_S / 86_400:.0f}d")
    return found


def job_estimate_s(group: PodGroup | None, pods: Iterable[Pod]) -> float:
    """Return seconds from the start of a job to its expected end, 0 if nothing says. Of several pods the longest
    counts. An unusable text counts as none (``estimate_problems`` names it)."""
    # The group before its pods: what is said of the job as a whole is meant for all of it.
    holders: list[Labelled] = ([] if group is None else [group]) + [*pods]
    deadlines = [pod.active_deadline_s for pod in holders if isinstance(pod, Pod) and pod.active_deadline_s]
    return (
        _written(ESTIMATE_ANNOTATION, holders)
        # A deadline before other schedulers' limits, because the kubelet enforces it.
        or min(max(deadlines, default=0.0), ESTIMATE_MAX_S)
        or _written(KUEUE_SECONDS, holders)
        or _written(SLINKY_MINUTES, holders)
    )


def estimate_problems(holder: Labelled) -> Iterator[str]:
    """Yield what is wrong with the estimates that an object carries."""
    for key, text in carried_estimates(holder).items():
        try:
            parse_estimate(key, text)
        except EstimateError as error:
            yield f"{key}: {error} (ignored)"


def carried_estimates(holder: Labelled) -> dict[str, str]:
    """Return the estimates that an object carries, by key, readable or not. An annotation counts before a label."""
    annotations, labels = holder.annotations, holder.labels
    return {
        key: annotations[key] if key in annotations else labels[key]
        for key in ESTIMATE_KEYS
        if key in annotations or key in labels
    }


def estimate_text(seconds: float) -> str:
    """Return seconds as a value of ``pumice.dev/estimate``, within the bounds of an estimate."""
    return f"{min(max(seconds, ESTIMATE_MIN_S), ESTIMATE_MAX_S):.0f}s"


def expected_end_s(started: float, estimate_s: float, now: float) -> float:
    """Return when a running job is expected to end, by its estimate.

    The expected end of an overdue job is a minute after its estimate, then 2, 4, 8 minutes, and so on: always the next
    of these that has not passed. So it stays the same until it passes, and a plan that rests on it moves seldom,
    however wrong the estimate was. Source: Tsafrir, Etsion and Feitelson, Backfilling Using System-Generated
    Predictions, 2007, which corrects estimates that have passed by growing steps.
    """
    end = started + estimate_s
    # Durations of jobs have heavy tails: the longer a job has been running beyond its limit, the longer it will go on.
    step = 0.0
    while end + step <= now:
        step = max(2 * step, OVERDUE_MIN_S)
    return end + step


OVERDUE_MIN_S = 60.0


def _written(key: str, holders: Iterable[Labelled]) -> float:
    """Return the first estimate of one key among objects, 0 for none: of the PodGroup, else the longest of the pods."""
    longest = 0.0
    for holder in holders:
        text = holder.annotations.get(key) or holder.labels.get(key)
        if text is None or text == "":
            continue
        try:
            found = parse_estimate(key, text)
        except EstimateError:
            continue
        if isinstance(holder, PodGroup):
            return found
        # A job ends when its last pod does.
        longest = max(longest, found)
    return longest
