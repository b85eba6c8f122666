"""Steps of a search: shared out over queues and namespaces, counted once, and carried on in the next cycle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from pumice.framework.cycle.budget import CYCLE_STEPS, FLOOR, SEARCH_STEPS_MAX, Budget
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.outcome import Writes
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import JobsEntry
from pumice.model.blockers import SearchCut
from pumice.model.events import Gone
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.store import Store
from pumice.testing.build import cluster, node, podgroup, pods, queue, session


def store_of(*jobs: str) -> Store:
    """``queue/namespace/name`` of each job."""
    made: list[Any] = []
    for each in jobs:
        of, namespace, name = each.split("/")
        made += [podgroup(name, 1, queue=of, namespace=namespace, phase="Inqueue")]
        made += pods(name, 1, namespace=namespace)
    return cluster(node("n"), *(queue(name) for name in sorted({each.split("/")[0] for each in jobs})), *made)


def opened(store: Store, action: str = "preempt") -> Session:
    ssn = session(store)
    ssn.trace.action = action
    return ssn


def run(ssn: Session, steps: int, cost: int) -> tuple[list[str], Budget]:
    """Search for each job by name at a cost in steps. Return those that had all of them."""
    rows = ssn.jobs.rows
    budget, done = Budget(ssn, rows, steps), list[str]()
    by_name = {int(row): ssn.tables.jobs.groups[row].name for row in rows}
    for of in range(len(ssn.tables.queues.names)):
        mine = rows[ssn.tables.jobs.queue[rows] == of]
        jobs = Heap(lambda rows: [by_name[row] for row in rows], mine.tolist())
        for job in budget.jobs(jobs):
            if all(budget.spend() for _ in range(cost)):
                done.append(by_name[job])
        budget.close(mine)
    budget.end()
    return done, budget


def cut(ssn: Session) -> list[str]:
    entries = [
        reports
        for reports in ssn.trace.log
        if isinstance(reports, JobsEntry) and isinstance(reports.finding, SearchCut)
    ]
    return sorted(ssn.tables.jobs.groups[row].name for reports in entries for row in reports.jobs.tolist())


def in_cycles(store: Store, steps: int, cost: int, cycles: int) -> list[list[str]]:
    found = []
    for _ in range(cycles):
        ssn = opened(store)
        found.append(run(ssn, steps, cost)[0])
        store.remember(Writes(notes=dict(ssn.notes)))
    return found


STORM = [f"q/bad/a{i}" for i in range(9)]


def test_what_fits_is_not_cut_and_leaves_no_note() -> None:
    ssn = opened(store_of(*STORM))
    done, _ = run(ssn, 900, 100)
    assert len(done) == 9
    assert ssn.notes == {}


def test_jobs_without_steps_are_named() -> None:
    ssn = opened(store_of(*STORM))
    done, _ = run(ssn, 300, 100)
    assert done == ["a0", "a1", "a2"]
    assert cut(ssn) == [f"a{i}" for i in range(3, 9)]
    assert ssn.notes


@pytest.mark.parametrize("jobs", [[*STORM, "q/good/z"], [*STORM, "r/good/z"], [*STORM, "r/bad/b", "r/good/z"]])
def test_a_storm_leaves_others_their_part(jobs: Sequence[str]) -> None:
    done, _ = run(opened(store_of(*jobs)), 400, 100)
    assert "z" in done


def test_what_a_queue_leaves_over_is_for_later_ones() -> None:
    done, _ = run(opened(store_of("p/x/a", *(f"q/x/b{i}" for i in range(9)))), 400, 100)
    assert len(done) == 4


def test_every_account_has_a_floor() -> None:
    done, _ = run(opened(store_of(*(f"q{i}/x/a{i}" for i in range(9)))), 9, FLOOR)
    assert len(done) == 9


def test_the_next_cycle_goes_on_where_the_last_one_ended() -> None:
    first, second, third, fourth = in_cycles(store_of(*STORM), 300, 100, 4)
    assert [first, second, third] == [[f"a{i}" for i in range(k, k + 3)] for k in (0, 3, 6)]
    assert fourth == first


def test_a_job_that_needs_more_than_all_does_not_hold_back_the_rest() -> None:
    store = store_of("q/x/a", "q/x/b", "q/x/c")
    cycles = [first_needs_too_much(store) for _ in range(4)]
    assert cycles[:2] == [["a"], ["b", "c", "a"]]
    assert "b" in cycles[2] + cycles[3]


def first_needs_too_much(store: Store) -> list[str]:
    """Return the jobs that were begun in one cycle, of which "a" takes all steps that there are."""
    ssn, begun = opened(store), list[str]()
    budget = Budget(ssn, ssn.jobs.rows, 100)
    for job in budget.jobs(
        Heap(lambda rows: [ssn.tables.jobs.groups[row].name for row in rows], ssn.jobs.rows.tolist())
    ):
        begun.append(ssn.tables.jobs.groups[job].name)
        while budget.spend() and begun[-1] == "a":
            pass
    budget.end()
    store.remember(Writes(notes=dict(ssn.notes)))
    return begun


def test_a_note_ends_when_nothing_is_cut_any_more() -> None:
    store = store_of(*STORM)
    in_cycles(store, 300, 100, 1)
    assert store.snapshot().notes
    ssn = opened(store)
    run(ssn, 0, 100)
    assert [math.isnan(value) for value in ssn.notes.values()] == [True]
    store.remember(Writes(notes=dict(ssn.notes)))
    assert store.snapshot().notes == {}


def test_if_the_job_to_resume_with_has_gone_all_are_tried() -> None:
    store = store_of(*STORM)
    in_cycles(store, 300, 100, 1)
    store.apply(Gone(PodGroup, "bad/a3"))
    done, _ = run(opened(store), 300, 100)
    assert done == ["a0", "a1", "a2"]


def test_an_answer_that_was_there_before_costs_nothing_again() -> None:
    ssn = opened(store_of(*STORM))
    budget = Budget(ssn, ssn.jobs.rows, 100)
    first, second = ssn.jobs.rows[:2].tolist()
    for job in (first, second):
        assert budget.begin(job)
        assert budget.spend_once("domain", 60)
    assert budget.spend_once("other domain", 40)
    assert not budget.spend_once("a third", 1)
    assert budget.is_cut()


def test_without_a_limit_nothing_is_cut() -> None:
    ssn = opened(store_of(*STORM))
    assert len(run(ssn, 0, 1000)[0]) == 9
    assert not cut(ssn)


def test_notes_of_one_action_say_nothing_about_another() -> None:
    store = store_of(*STORM)
    in_cycles(store, 300, 100, 1)
    assert run(opened(store, "reclaim"), 300, 100)[0] == ["a0", "a1", "a2"]


def test_what_is_reported_besides_cuts_no_job_but_those_after_it() -> None:
    ssn = opened(store_of("q/a/first", "q/a/second"))
    rows = ssn.jobs.rows
    budget = Budget(ssn, rows, FLOOR)
    first, second = rows.tolist()
    assert budget.begin(first)
    assert budget.spend_besides(FLOOR - 1)
    assert not budget.spend_besides(2)
    assert not budget.is_cut()
    assert budget.taken == FLOOR + 1
    assert not budget.begin(second)
    budget.end()
    assert cut(ssn) == [ssn.tables.jobs.groups[second].name]


def spent_in_turns(ssn: Session, least: int) -> list[int]:
    """Let each job spend all it has. Return how much that was."""
    budget, found = Budget(ssn, ssn.jobs.rows, 120, least=lambda _: least), list[int]()
    for job in ssn.jobs.rows.tolist():
        assert budget.begin(job)
        while budget.spend():
            pass
        found.append(budget.taken - 1)
    budget.end()
    return found


def test_what_first_jobs_need_is_given_as_far_as_the_reserve_goes() -> None:
    store = store_of(*(f"q{i:02d}/a/j{i}" for i in range(12)))
    ssn = opened(store)
    assert spent_in_turns(ssn, 100) == [FLOOR + 60, *11 * [FLOOR]]
    store.remember(Writes(notes=dict(ssn.notes)))
    # The other half of the reserve is for accounts that were cut.
    assert spent_in_turns(opened(store), 100) == [100, FLOOR + 52, *10 * [FLOOR]]


def test_what_a_first_job_does_not_need_stays_in_the_reserve() -> None:
    ssn = opened(store_of("q1/a/j1", "q1/b/j2"))
    budget = Budget(ssn, ssn.jobs.rows, 120, least=lambda _: 1000)
    assert budget.begin(0)
    assert budget.has_more_than(119) and not budget.has_more_than(120)
    assert budget.spend(1)
    assert budget.begin(1)
    assert budget.has_more_than(119) and not budget.has_more_than(120)
    assert budget.spend(120)
    assert not budget.spend()


def test_only_the_job_that_spends_first_takes_out_of_the_reserve() -> None:
    ssn = opened(store_of("q1/a/j1", "q1/a/j2"))
    budget = Budget(ssn, ssn.jobs.rows, 120, least=lambda _: 1000)
    assert budget.begin(0)
    assert budget.spend(1)
    assert budget.begin(1)
    assert not budget.has_more_than(119)
    assert budget.spend(119)
    assert not budget.spend()


def test_what_an_account_has_out_of_the_reserve_is_not_given_to_others() -> None:
    ssn = opened(store_of("q1/a/j1", "q2/a/j2"))
    budget = Budget(ssn, ssn.jobs.rows, 120, least=lambda _: 100)
    assert budget.begin(0)
    assert budget.spend(1)
    budget.close(ssn.jobs.rows[:1])
    assert budget.begin(1)
    assert budget.spend(119)
    assert not budget.spend()


def test_what_all_leave_is_shared_by_those_that_were_cut() -> None:
    ssn = opened(store_of("p/a/j0", "q/a/j1", "q/a/j2", "q/a/j3", "r/a/j4"))
    rows = ssn.jobs.rows.tolist()
    budget = Budget(ssn, ssn.jobs.rows, 120)
    for job in rows[:2]:
        assert budget.begin(job)
        budget.spend_besides(40)
    assert not budget.begin(rows[2])
    assert not budget.begin(rows[3])
    assert budget.begin(rows[4])
    # The last account has spent nothing, and its 40 steps are left.
    assert budget.share_rest({rows[3]}) == [rows[3]]
    assert budget.begin(rows[3])
    assert budget.spend(40)
    assert not budget.share_rest(rows)
    budget.end()
    assert cut(ssn) == ["j2"]


def test_actions_of_a_cycle_share_its_steps() -> None:
    ssn = session(store_of("q/a/j"), actions="allocate, preempt, reclaim, gangpreempt, gangreclaim")
    spent = [most_of(ssn, action) for action in ("allocate", "reclaim", "gangreclaim")]
    # A fifth of all; then a third of what is left, as preempt has taken nothing; then all that is left, up to the limit
    # of one action.
    assert spent == [CYCLE_STEPS // 5, (CYCLE_STEPS - spent[0]) // 3, SEARCH_STEPS_MAX]


def test_a_limit_above_the_default_is_granted_in_full() -> None:
    ssn = session(store_of("q/a/j"))
    assert most_of(ssn, "allocate", 2 * SEARCH_STEPS_MAX) == 2 * SEARCH_STEPS_MAX


def most_of(ssn: Session, action: str, steps: int = SEARCH_STEPS_MAX) -> int:
    """Return how many steps a job has in an action."""
    ssn.trace.action = action
    budget = Budget(ssn, ssn.jobs.rows, steps)
    assert budget.begin(0)
    while budget.spend():
        pass
    budget.end()
    return budget.taken - 1


def test_a_key_is_first_once() -> None:
    ssn = opened(store_of("q/a/j"))
    budget = Budget(ssn, ssn.jobs.rows, 120)
    assert [budget.is_first(key) for key in ("a", "b", "a")] == [True, True, False]


def test_a_namespace_in_many_queues_gets_no_more_than_one_in_a_single_queue() -> None:
    ssn = opened(store_of(*(f"q{i:02d}/bad/a{i}" for i in range(10)), "r/good/b"))
    budget = Budget(ssn, ssn.jobs.rows, 2000)
    spent = {}
    for job in ssn.jobs.rows.tolist():
        assert budget.begin(job)
        while budget.spend():
            pass
        spent[ssn.tables.jobs.groups[job].name] = budget.taken - 1
    assert spent == {f"a{i}": 100 for i in range(10)} | {"b": 1000}


def test_accounts_that_were_cut_share_their_reserve_by_namespace() -> None:
    store = store_of(*(f"q{i:02d}/bad/a{i}" for i in range(4)), "r/good/b")
    found = list[int]()
    for _ in range(2):
        ssn = opened(store)
        budget = Budget(ssn, ssn.jobs.rows, 400, least=lambda _: 10_000)
        for job in ssn.jobs.rows.tolist():
            budget.begin(job)
            while budget.spend():
                pass
        found.append(budget.taken - 1)  # of "b", which comes last
        budget.end()
        store.remember(Writes(notes=dict(ssn.notes)))
    # A half of all steps; and then a half of what is reserved for accounts that the last cycle cut.
    assert found == [200, 300]
