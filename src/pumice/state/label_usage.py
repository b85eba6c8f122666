"""What ended pods used, by the value of a label, over the windows that the policy needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pumice.columns.tables import Tables
from pumice.model.pod import ENDED, Pod
from pumice.model.usage import UsageWindow

#: The most values of one label that are kept; a further one replaces the value that was not used for the longest time.
#: Users choose labels freely, so their number must be bounded.
VALUES_MAX = 1000


class LabelUsage:
    """Counts what each pod used when it ends, in each of ``windows``.

    A pod ends at its ``finish_time``. A pod that is deleted before, or that has no ``finish_time``, ends at the next
    snapshot. A pod that had ended before it was first seen, and has no ``finish_time``, is not counted.
    """

    def __init__(self, tables: Tables) -> None:
        self.windows: tuple[UsageWindow, ...] = ()
        self._tables = tables
        # Since the last snapshot. Events have no time of their own, and the store has no clock: ``settle`` gives it.
        self._ended: list[Pod] = []
        self._row_of: dict[UsageWindow, dict[str, int]] = {}

    def keep(self, windows: Sequence[UsageWindow], there: Iterable[Pod]) -> None:
        """Keep these windows and drop all others. Of the pods that exist (``there``), ended ones are counted in windows
        that are new."""
        table, before = self._tables.label_usages, self._row_of
        self.windows, self._row_of = tuple(windows), {window: before.pop(window, {}) for window in windows}
        for rows in before.values():
            for row in rows.values():
                table.free_row(row)
        fresh = [window for window, rows in self._row_of.items() if not rows]
        for pod in there if fresh else ():
            if pod.phase in ENDED and pod.finish_time is not None:
                self._count(pod, pod.finish_time, fresh)

    def seen(self, pods: Mapping[str, Pod], known: Callable[[str], Pod | None]) -> None:
        """Take in new or changed pods, before they are stored. ``known`` returns the stored pod of a key."""
        for key, pod in pods.items():
            before = known(key)
            # Another pod under the same name: the deletion of the first was not seen.
            if before is not None and before.uid != pod.uid:
                self.gone((before,))
                before = None
            was_running = before is not None and before.phase not in ENDED
            if pod.phase in ENDED and (was_running or (before is None and pod.finish_time is not None)):
                self._ended.append(pod)

    def gone(self, pods: Iterable[Pod]) -> None:
        """Take in pods that were deleted."""
        # A pod that had ended before was counted when it ended.
        self._ended += [pod for pod in pods if pod.phase not in ENDED]

    def settle(self, now: float) -> None:
        """Count the pods that ended since the last call. ``now``: seconds since the epoch."""
        ended, self._ended = self._ended, []
        for pod in ended:
            # A node's clock may be ahead: usage in the future would move the window on too early.
            self._count(pod, now if pod.finish_time is None else min(pod.finish_time, now), self.windows)

    def _count(self, pod: Pod, end: float, windows: Sequence[UsageWindow]) -> None:
        if pod.start_time is None or end <= pod.start_time:
            return
        amounts = self._tables.axis.vector(pod.spec.request)
        for window in windows:
            row = self._row(window, pod.labels.get(window.label, ""), end)
            self._tables.label_usages.add(row, amounts, pod.start_time, end)

    def _row(self, window: UsageWindow, value: str, end: float) -> int:
        """Return the row of a value, a new one if it has none."""
        table, rows = self._tables.label_usages, self._row_of[window]
        row = rows.get(value)
        if row is None:
            if len(rows) >= VALUES_MAX:
                # By value where two are equally old, so that the choice depends on no order of arrival.
                table.free_row(rows.pop(min(rows, key=lambda each: (table.newest[rows[each]], each))))
            named = {"label": window.label, "label_value": value, "window_s": window.window_s}
            row, *_ = table.new_rows(1, newest=window.span_of(end), **named)
            rows[value] = row
        return row
