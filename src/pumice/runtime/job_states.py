"""What a job is after a cycle, by number: its state, or the code of the reason for which it waits."""

from __future__ import annotations

import numpy as np

from pumice.answers.codes import Code
from pumice.columns.counting import PENDING, PIPELINED
from pumice.columns.dtypes import I8, I32, AnyArray
from pumice.model.status import TaskStatus

#: States of a job, by number: pods that got a node in this cycle come first.
STATES = ("starts", "reserved", "waits", "partly runs", "runs", "ended", "no pods")
STARTS, _RESERVED, WAITS, _PARTLY, _RUNS, ENDED, EMPTY = range(len(STATES))
#: States in which a job has pods on nodes, and in which it waits for its first.
STATES_ON_NODES = (STATES[STARTS], STATES[_PARTLY], STATES[_RUNS])
STATES_WAITING = (STATES[_RESERVED], STATES[WAITS])
CODES = tuple(Code)
NUMBER_OF = {code: number for number, code in enumerate(CODES)}


def states_of(counts: I32, held: AnyArray) -> I8:
    """Return the states of jobs, into STATES. ``counts`` (J, statuses): of their pods; ``held`` (J,): with a node."""
    waits = counts[:, PENDING] > 0
    return np.select(
        [
            counts[:, TaskStatus.BINDING] > 0,
            (counts[:, PIPELINED] > 0) & (held == 0),
            waits & (held == 0),
            waits | (counts[:, PIPELINED] > 0),
            held > 0,
            counts.sum(axis=1) > 0,
        ],
        [STARTS, _RESERVED, WAITS, _PARTLY, _RUNS, ENDED],
        EMPTY,
    ).astype(np.int8)
