"""How busy nodes really are, what queues had of the cluster lately, and which usage of pods is kept."""

from __future__ import annotations

from math import floor

from msgspec import Struct


class NodeUsage(Struct, frozen=True):
    """What a node's programs use: ``cpu`` and ``memory`` in percent of what the machine has, the mean of the last ten
    minutes; ``at``: when that was measured, seconds since the epoch, 0 where it never was."""

    name: str
    cpu: float
    memory: float
    at: float = 0.0


class QueueHistory(Struct, frozen=True):
    """Which part of all ``cpu``, ``memory`` and ``gpu`` of the cluster a queue had over a window that ended ``at`` a
    moment, seconds since the epoch: 0 to 1, more where the cluster was larger than is known. Source: KAI usage
    database."""

    name: str
    cpu: float
    memory: float
    gpu: float
    at: float = 0.0


#: A window is counted in so many spans of equal length. What was used in the oldest is left out span by span.
SPANS = 24
#: Bounds of a window, in seconds, and of the name of a label, in characters.
WINDOW_S_MIN, WINDOW_S_MAX, LABEL_MAX = 60.0, 400 * 86_400.0, 317


class UsageWindow(Struct, frozen=True):
    """Usage that is kept: of pods by the value of their label ``label``, over the last ``window_s`` seconds."""

    label: str
    window_s: float

    @property
    def span_s(self) -> float:
        """The length of a span."""
        return self.window_s / SPANS

    def span_of(self, moment: float) -> int:
        """The number of the span in which a moment is, counted from the epoch."""
        return floor(moment / self.span_s)

    def begins(self, now: float) -> float:
        """The moment from which on usage counts: the window is what is left of the newest span, and the ones before."""
        return (self.span_of(now) - SPANS + 1) * self.span_s

    @property
    def problem(self) -> str:
        """What is wrong with it, with what was found and what was wanted; empty if nothing is."""
        if not self.label or len(self.label) > LABEL_MAX:
            return f"usage by a label: found {self.label!r:.80}, wanted a name of 1 to {LABEL_MAX} characters"
        if not WINDOW_S_MIN <= self.window_s <= WINDOW_S_MAX:
            return f"usage over a window: found {self.window_s:g} s, wanted {WINDOW_S_MIN:g} to {WINDOW_S_MAX:,.0f} s"
        return ""
