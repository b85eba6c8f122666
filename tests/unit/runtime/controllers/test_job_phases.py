"""Where actions lead from each phase, and how durations are written."""

import pytest

from pumice.runtime.controllers.job_phases import FINISHED, JobAction, JobPhase, Move, move
from pumice.runtime.controllers.job_status import duration_text

RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
ENDS = {"AbortJob": "Aborting", "CompleteJob": "Completing", "TerminateJob": "Terminating"}
TRIED_AGAIN = dict.fromkeys(RESTARTS, ("Restarting", True))
FROM_LIVE = {**TRIED_AGAIN, **{action: (phase, False) for action, phase in ENDS.items()}}
RESUMED = {"ResumeJob": ("Restarting", True)}

#: Every phase, and every action that means something in it. Source: spec 06 §10.5.
TABLE = {
    "Pending": FROM_LIVE,
    "Running": FROM_LIVE,
    "Restarting": dict.fromkeys((*RESTARTS, *ENDS, "ResumeJob"), ("Restarting", False)),
    "Aborting": RESUMED,
    "Aborted": RESUMED,
    "Completing": {},
    "Terminating": {},
    "Completed": {},
    "Failed": {},
    "Terminated": {},
}


@pytest.mark.parametrize("phase", JobPhase)
def test_moves(phase: JobPhase) -> None:
    found = {action.value: move(phase, action) for action in JobAction}
    wanted = {action.value: None for action in JobAction} | {
        action: Move(JobPhase(to), retry) for action, (to, retry) in TABLE[phase.value].items()
    }
    assert found == wanted


def test_nothing_leads_out_of_what_is_finished() -> None:
    assert {phase.value for phase in FINISHED} == {"Completed", "Failed", "Terminated"}
    assert not any(TABLE[phase.value] for phase in FINISHED)


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(0, "0s"), (-5, "0s"), (59.9, "59s"), (60, "1m0s"), (3600, "1h0m0s"), (90061, "25h1m1s")]
)
def test_durations_are_written_as_go_does(seconds: float, wanted: str) -> None:
    assert duration_text(seconds) == wanted
