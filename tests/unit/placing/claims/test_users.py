"""The tasks that use a claim are counted as a plain loop over them counts."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.model.devices.claims import ResourceClaim
from pumice.model.status import TaskStatus
from pumice.placing.claims.ledger import claim_ledger
from pumice.testing.devices import claim
from tests.unit.placing.claims.kit import claiming, opened, world

_STAY = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
_NAMES = "abcdefg"


@pytest.mark.parametrize("seed", range(40))
def test_counts_of_users_are_those_of_a_loop_over_tasks(seed: int) -> None:
    random = np.random.default_rng(seed)
    users = {name: [key for key in "cd" if random.random() < 0.6] for name in _NAMES}
    reserved = ("uid-elsewhere", "uid-elsewhere-too")
    claims = [ResourceClaim("ns", key, claim(key, gpu_com=1).requests, reserved_for=reserved) for key in "cd"]
    ssn = opened(world(claims, [claiming(name, *users[name]) for name in _NAMES], names=_NAMES))
    ledger, tasks = claim_ledger(ssn), ssn.tables.tasks
    rows = {tasks.pods[row].name: row for row in range(len(_NAMES))}
    status = {name: TaskStatus(int(random.choice([0, 1, 2, 5, 6, 7, 10]))) for name in _NAMES}
    leaving = {name: int(random.choice([-1, 0])) for name in _NAMES}
    for name, row in rows.items():
        ssn.journal.put(tasks["status"], [row], [int(status[name])])
        ssn.journal.put(tasks["leaving"], [row], [leaving[name]])

    def stays(name: str) -> bool:
        return status[name] in _STAY or (status[name] is TaskStatus.PIPELINED and leaving[name] < 0)

    for number, each in enumerate(ledger.claims):
        using = [name for name in _NAMES if each.name in users[name]]
        placed = [name for name in using if stays(name) or status[name] is TaskStatus.PIPELINED]
        assert ledger.users.reserved(number) == len(placed) + len(reserved)
        leave = [name for name in using if status[name] in (TaskStatus.RELEASING, TaskStatus.PIPELINED)]
        assert ledger.users.are_leaving(number) == (bool(leave) and not any(map(stays, using)))
        for name in using:
            others = [other for other in using if other != name]
            assert ledger.users.stay_without(rows[name], number) == any(map(stays, others))
            assert ledger.users.is_placed(rows[name]) == (name in placed)
