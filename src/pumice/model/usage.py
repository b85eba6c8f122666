"""Measured load of nodes, recent usage of queues, and which usage of pods is kept."""

from __future__ import annotations

from math import floor

from msgspec import Struct


class NodeUsage(Struct, frozen=True):
    """Measured load of a node: percent of the machine's CPU and memory, the mean of ten minutes. ``at``: time of the
    measurement in seconds since the epoch, 0 if there is none."""

    name: str
    cpu: float
    memory: float
    at: float = 0.0


class QueueHistory(Struct, frozen=True):
    """A queue's share of all ``cpu``, ``memory`` and ``gpu`` of the cluster over a window that ended at ``at`` (seconds
    since the epoch): 0 to 1, or more if the cluster was larger than known. Source: KAI usage database."""

    name: str
    cpu: float
    memory: float
    gpu: float
    at: float = 0.0


#: Number of equal spans of a window. The oldest usage leaves the window span by span.
SPANS = 24
#: Bounds of a window, in seconds, and of the name of a label, in characters.
WINDOW_S_MIN, WINDOW_S_MAX, LABEL_MAX = 60.0, 400 * 86_400.0, 317


class UsageWindow(Struct, frozen=True):
    """Which usage is kept: of pods by the value of their label ``label``, over the last ``window_s`` seconds."""

    label: str
    window_s: float

    @property
    def span_s(self) -> float:
        """Length of a span in seconds."""
        return self.window_s / SPANS

    def span_of(self, moment: float) -> int:
        """Return the number of the span that contains a moment, counted from the epoch."""
        # Counted from the epoch and not from the start of the process, so that a restart continues the same spans.
        return floor(moment / self.span_s)

    def begins(self, now: float) -> float:
        """Return the time from which usage counts. The window is the newest span so far and the spans before it."""
        # In whole spans, so that the sum of a window changes only as one span ends, and can be kept until then.
        return (self.span_of(now) - SPANS + 1) * self.span_s

    @property
    def problem(self) -> str:
        """What is wrong with the settings: found, wanted; "" for nothing."""
        if not self.label or len(self.label) > LABEL_MAX:
            return f"usage by a label: found {self.label!r:.80}, wanted a name of 1 to {LABEL_MAX} characters"
        if not WINDOW_S_MIN <= self.window_s <= WINDOW_S_MAX:
            return f"usage over a window: found {self.window_s:g} s, wanted {WINDOW_S_MIN:g} to {WINDOW_S_MAX:,.0f} s"
        return ""
