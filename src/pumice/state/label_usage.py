"""What pods used until they ended, by the value of a label: sums in a ring of spans, of as many windows as the policy
keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pumice.columns.tables import Tables
from pumice.model.pod import Pod
from pumice.model.usage import UsageWindow

#: Values of one label that are kept. For a further one, the value that has not been used for the longest time goes.
VALUES_MAX = 1000
_ENDED = ("Succeeded", "Failed")


class LabelUsage:
    """Counts pods as they end, under each of ``windows``. Without a window nothing is looked at.

    A pod ends when its containers say so (``finish_time``). One that is deleted before, or ends without saying when,
    ends at the moment of the next snapshot; and one that had ended before it was first seen, and does not say when, is
    not counted.
    """

    def __init__(self, tables: Tables) -> None:
        self.windows: tuple[UsageWindow, ...] = ()
        self._tables = tables
        self._ended: list[Pod] = []  # since the last snapshot
        self._row_of: dict[UsageWindow, dict[str, int]] = {}

    def keep(self, windows: Sequence[UsageWindow], there: Iterable[Pod]) -> None:
        """Keep these windows from now on, and forget others. ``there``: the pods that are known, of which those that
        have ended are counted under a window that is new."""
        table, before = self._tables.label_usages, self._row_of
        self.windows, self._row_of = tuple(windows), {window: before.pop(window, {}) for window in windows}
        for rows in before.values():
            for row in rows.values():
                table.free_row(row)
        fresh = [window for window, rows in self._row_of.items() if not rows]
        for pod in there if fresh else ():
            if pod.phase in _ENDED and pod.finish_time is not None:
                self._count(pod, pod.finish_time, fresh)

    def seen(self, pods: Mapping[str, Pod], known: Callable[[str], Pod | None]) -> None:
        """These pods came or changed. ``known`` gives what was known of each before."""
        for key, pod in pods.items():
            before = known(key)
            if before is not None and before.uid != pod.uid:
                self.gone((before,))
                before = None
            was_running = before is not None and before.phase not in _ENDED
            if pod.phase in _ENDED and (was_running or (before is None and pod.finish_time is not None)):
                self._ended.append(pod)

    def gone(self, pods: Iterable[Pod]) -> None:
        """These pods are not there any more."""
        self._ended += [pod for pod in pods if pod.phase not in _ENDED]

    def settle(self, now: float) -> None:
        """Count what ended since the last call, at the latest at ``now``."""
        ended, self._ended = self._ended, []
        for pod in ended:
            self._count(pod, now if pod.finish_time is None else min(pod.finish_time, now), self.windows)

    def _count(self, pod: Pod, end: float, windows: Sequence[UsageWindow]) -> None:
        if pod.start_time is None or end <= pod.start_time:
            return
        amounts = self._tables.axis.vector(pod.spec.request)
        for window in windows:
            row = self._row(window, pod.labels.get(window.label, ""), end)
            self._tables.label_usages.add(row, amounts, pod.start_time, end)

    def _row(self, window: UsageWindow, value: str, end: float) -> int:
        """The row of a value, made if need be."""
        table, rows = self._tables.label_usages, self._row_of[window]
        row = rows.get(value)
        if row is None:
            if len(rows) >= VALUES_MAX:
                table.free_row(rows.pop(min(rows, key=lambda each: (table.newest[rows[each]], each))))
            named = {"label": window.label, "label_value": value, "window_s": window.window_s}
            row, *_ = table.new_rows(1, newest=window.span_of(end), **named)
            rows[value] = row
        return row
