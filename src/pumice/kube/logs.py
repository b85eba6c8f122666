"""What a scheduler that runs says, and to whom: levels as with klog's ``-v``, one line an entry, text or JSON.

Names come from users: in text everything that is not printable is escaped, so nothing looks like an entry of its own.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any

import numpy as np

from pumice.framework.outcome import Outcome
from pumice.model.decisions import Bind, Decision
from pumice.runtime.why import why_jobs_wait

#: klog's levels as those of ``logging``: a higher number says more, a lower level does.
V2, V3, V4, V5 = 19, 15, logging.DEBUG, 5
_LEVELS = {0: logging.INFO, 1: logging.INFO, 2: V2, 3: V3, 4: V4, 5: V5}
_LETTERS = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))

_log = logging.getLogger("pumice.cycle")


def set_up(verbosity: int, as_json: bool, stream: IO[str] | None = None) -> None:
    """Have what Pumice says at this ``-v`` written to ``stream`` (standard error); of other libraries, warnings."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("pumice").setLevel(level_of(verbosity))


def level_of(verbosity: int) -> int:
    return _LEVELS[min(max(verbosity, 0), 5)]


class TextLines(logging.Formatter):
    """``2026-01-31T12:00:00.123Z I kube: message``. A traceback follows on lines of its own, set in."""

    def format(self, record: logging.LogRecord) -> str:
        letter = next((letter for level, letter in _LETTERS if record.levelno >= level), "I")
        lines = [f"{_time(record)} {letter} {_room(record)}: {escaped(record.getMessage())}"]
        if record.exc_info:
            lines += [f"    {escaped(line)}" for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join(lines)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, v, room, message, and what an entry gives as ``extra={"fields": …}``."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": "info" if record.levelno <= logging.INFO else record.levelname.lower(),
            "v": next((v for v, level in sorted(_LEVELS.items()) if level <= record.levelno), 5),
            "room": _room(record),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def escaped(text: str) -> str:
    """On one line, and nothing in it moves a cursor."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _room(record: logging.LogRecord) -> str:
    return record.name.removeprefix("pumice.")


# -- a cycle, as Volcano's users know it


def tell_cycle(outcome: Outcome, decisions: list[Decision]) -> None:
    """Log what a cycle did, once it is over, in the words of Volcano's log and at its levels."""
    if not _log.isEnabledFor(V3):
        return
    detailed = _log.isEnabledFor(V4)
    for level, text in _lines(outcome, decisions, detailed):
        if _log.isEnabledFor(level):
            _log.log(level, "%s", text)


def _lines(outcome: Outcome, decisions: list[Decision], detailed: bool) -> Iterator[tuple[int, str]]:
    ssn = outcome.session
    queues, ready = len(ssn.tables.queues.names), bool(ssn.tables.tree.ready)
    yield V4, "Start scheduling ..."
    jobs = len(ssn.live_jobs())
    yield (
        V3,
        f"Open Session {ssn.uid} with {jobs} Job and {queues} Queues. HyperNodesReadyToSchedule: {str(ready).lower()}",
    )
    for action in ssn.policy.actions:
        name = action.name.capitalize()
        yield V5, f"Enter {name} ..."
        if action.name == "enqueue":
            yield V3, f"Try to enqueue PodGroup to {queues} Queues"
        elif action.name == "allocate":
            yield V3, f"Try to allocate resource to {queues} Queues"
        for entry in outcome.story:
            if entry.action == action.name:
                yield _entry(entry.what, entry.subject, entry.detail, action.name)
        if action.name == "allocate":
            yield from _statements(outcome, decisions)
        yield V5, f"Leaving {name} ..."
    for decision in decisions:
        if isinstance(decision, Bind):
            yield V3, f"Binding Task <{decision.pod}> to node <{decision.node}>"
        else:
            yield V3, f"Evicting Task <{decision.pod}> from node <{decision.node}>: {decision.reason}"
    for pod, node in outcome.pipelined.items():
        yield V3, f"Pipelining Task <{pod}> to node <{node}>"
    if detailed:
        for job, why in why_jobs_wait(outcome).items():
            yield V4, f"Job <{job}> waits: {why.text}"
    yield V3, f"Close Session {ssn.uid}"
    yield V4, "End scheduling ..."


def _statements(outcome: Outcome, decisions: list[Decision]) -> Iterator[tuple[int, str]]:
    """The jobs that were tried: who got its nodes, and who had to give back what it had been given."""
    tables = outcome.session.tables
    tasks, nodes = tables.tasks, len(tables.nodes.facts)
    committed = Counter(decision.job for decision in decisions if isinstance(decision, Bind))
    for job, count in committed.items():
        yield V3, f"There are <{nodes}> nodes for Job <{job}>"
        yield V3, f"Committing operations ... Job <{job}>: {count} tasks"
    for row in np.unique(tasks.job[tasks.alive & (tasks.last_status >= 0)]).tolist():
        job = tables.jobs.uids[row]
        if row >= 0 and job not in committed:
            yield V3, f"There are <{nodes}> nodes for Job <{job}>"
            yield V3, f"Discarding operations ... Job <{job}>"


def _entry(what: str, subject: str, detail: str, action: str) -> tuple[int, str]:
    match what:
        case "queue overused":
            return V3, f"Queue <{subject}> is overused, ignore it."
        case "queue full":
            return V3, f"Queue <{detail}> is overused when considering job <{subject}>, ignore it."
        case "invalid" | "hypernodes not ready":
            return V4, f"Job <{subject}> skip {action}, reason: {detail or what}"
    return V4, f"<{subject}> {what}" + (f": {detail}" if detail else "")
