"""Limit the work of an action by counted steps, shared out over queues and namespaces.

The work that a job causes depends on what it asks for, which its owner chooses. So an action that searches has a budget
of steps in each cycle, its argument ``maxSearchSteps``. What a step is the action says: an attempt of about equal cost,
such as a task tried in a domain.

1. All actions of a cycle share ``CYCLE_STEPS``: each has an equal part of what those before it have left. A limit above
   the default is granted in full, and counts.
2. The jobs of one namespace in one queue share an *account*. A namespace of which the first account begins gets an
   equal part of what is not given out yet; its accounts share it in the same way, and each always gets ``FLOOR``. So no
   tenant uses up what others need, however many queues its jobs name. If the first job of an account needs more, it
   gets that out of a reserve, at most as large as the budget. Half of the reserve is for accounts that the last cycle
   cut, in equal parts for their namespaces, so that a large job of each tenant is searched for in time, and a cycle is
   bounded. An action that serves queues in turn shares out what is left in the end once more (``share_rest``).
3. A search that has no step left ends. It proves nothing, so nothing that it found may be remembered; the trace has a
   ``SearchCut`` for it, and for each job of the account that was not tried.
4. The next cycle goes on where this one ended: the first job that was not tried comes first in its account. Where that
   is is a note of the snapshot, so a cycle remains a function of its inputs.
5. Steps are counted as if nothing were remembered. An answer from the memo costs what it cost when it was computed
   (``spend_once``), so a cycle with an empty memo is cut at the same step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.model.blockers import SearchCut

#: Default of ``maxSearchSteps``: steps of one action in one cycle.
SEARCH_STEPS_MAX = 20_000
#: About what a step takes, in seconds.
STEP_S = 25e-6
#: Steps of all actions together in one cycle, and their reserves together: two CPU seconds of searches at most.
CYCLE_STEPS, CYCLE_RESERVES = 50_000, 30_000
#: Steps that each account has in any case.
FLOOR = 32
_NOTE = "search"

#: A queue, by row, and a namespace.
Account = tuple[int, str]


class TakesJobs(Protocol):
    """Jobs in order, as far as jobs can be put back."""

    def push(self, job: int, /) -> None:
        """Add a job with its present key."""
        ...


class Jobs(TakesJobs, Protocol):
    """Jobs in order: a ``Heap`` or a ``Line``."""

    def __len__(self) -> int: ...

    def pop(self) -> int:
        """Remove and return the first job."""
        ...


class _OfCycle:
    """What the actions of a cycle have left of its steps. ``actions``: those that count, in order."""

    def __init__(self, actions: tuple[str, ...]) -> None:
        self._actions, self._at = actions, 0
        self._steps, self._reserve = CYCLE_STEPS, CYCLE_RESERVES

    def part(self, action: str, steps: int) -> tuple[int, int]:
        """Return the steps of the action that begins, and its reserve, at most ``steps`` each."""
        # An action for which no job waits begins no budget, and leaves its part to those after it.
        left = self._actions[self._at :]
        if action in left:
            self._at += left.index(action) + 1
        # A second budget of an action has a part as large as those of the actions that follow.
        actions = len(self._actions) - self._at + 1
        own = steps if steps > SEARCH_STEPS_MAX else min(steps, max(self._steps // actions, FLOOR))
        return own, min(steps, self._reserve // actions)

    def took(self, steps: int, of_reserve: int) -> None:
        """Record what an action took, and how much of it out of its reserve."""
        self._reserve = max(self._reserve - of_reserve, 0)
        self._steps = max(self._steps - max(steps - of_reserve, 0), 0)


@dataclass(slots=True)
class _FirstJob:
    """The job of an account that took steps first. ``allowed``: what it may still take out of the reserve."""

    row: int
    allowed: int


class Budget:
    """The steps of the current action. ``rows``: the jobs that wait for it, (J,). ``steps``: its ``maxSearchSteps``;
    below 1 there is no limit. ``least``: how many steps an account has, as far as the reserve goes, if it begins with a
    job, by row; default: ``FLOOR``. ``of``: what is searched for, if the action has a second budget for that."""

    def __init__(
        self, ssn: Session, rows: AnyArray, steps: int, *, least: Callable[[int], int] = lambda _: FLOOR, of: str = ""
    ) -> None:
        self._least, self._ssn, self._action = least, ssn, ssn.trace.action
        self._name = f"{self._action} {of}" if of else self._action
        self._limited = steps > 0
        self._of_cycle = ssn.shared(_OfCycle, lambda: _OfCycle(ssn.policy.searching_actions))
        self._free, reserve = self._of_cycle.part(self._name, steps) if self._limited else (steps, steps)
        self._of = {job: self._account_of(job) for job in rows.tolist()}
        #: Accounts that have not begun: of namespaces of which none has, and of others, with what these keep for them.
        self._new: dict[str, set[Account]] = {}
        self._waiting: dict[str, set[Account]] = {}
        self._kept: dict[str, int] = {}
        for account in self._of.values():
            self._new.setdefault(_namespace(account), set()).add(account)
        self._left: dict[Account, int] = {}
        self._spent: dict[Account, int] = {}
        self._beyond: dict[Account, int] = {}  # what it has beyond its part
        self._first: dict[Account, _FirstJob] = {}
        self._paid: set[Hashable] = set()
        self._seen: set[Hashable] = set()
        self._cut: dict[Account, dict[int, None]] = {}
        self._resume = self._resumed()
        self._was_cut = dict(self._resume)
        # By namespace, because a storm in many queues has many accounts that are cut in every cycle.
        cut = list(dict.fromkeys(_namespace(each) for each in self._was_cut))
        #: For all accounts, and for those that the last cycle cut, by namespace.
        self._reserve, self._for_cut = reserve - reserve // 2, dict.fromkeys(cut, reserve // 2 // max(len(cut), 1))
        self._granted = self._reserve + sum(self._for_cut.values())
        self._account: Account | None = None
        self._job, self._is_cut, self._is_free = -1, False, False
        #: Steps of the current job.
        self.taken = 0
        #: How often the action has changed the cluster. Answers of before count no more.
        self.changes = 0

    # -- jobs in order ------------------------------------------------------------------------------------------------

    def jobs(self, jobs: Jobs) -> Iterator[int]:
        """Yield jobs that have steps left, in order, those first that the last cycle did not try. The caller may remove
        jobs meanwhile. Jobs without steps are noted."""
        postponed: list[int] = []
        while jobs or postponed:
            if not jobs:
                self.resume(jobs, postponed)
                postponed = []
            job = jobs.pop()
            if self.is_postponed(job):
                postponed.append(job)
            elif self.begin(job):
                yield job

    def is_postponed(self, job: int) -> bool:
        """Return True if the last cycle tried the job and not those after it. To be asked in the order of jobs."""
        account = self._of[job]
        if self._resume.get(account) == job:
            del self._resume[account]
        return account in self._resume

    def resume(self, jobs: TakesJobs, postponed: list[int]) -> None:
        """Put postponed jobs back. Those after them were tried, or the first of those has gone."""
        for job in postponed:
            self._resume.pop(self._of[job], None)
            jobs.push(job)

    def is_resuming(self, job: int) -> bool:
        """Return True if jobs of the account are postponed."""
        return self._of[job] in self._resume

    def resumed_first(self, jobs: Sequence[int]) -> list[int]:
        """Return jobs in order, those last of each account that the last cycle tried before it was cut."""
        passed, first, last = set[Account | None](), list[int](), list[int]()
        for job in jobs:
            account = self._of.get(job)
            if account in self._was_cut and self._was_cut[account] == job:
                passed.add(account)
            (last if account in self._was_cut and account not in passed else first).append(job)
        return first + last

    def begin(self, job: int) -> bool:
        """Begin to count for a job. Return False, and note it, if its account has no steps left."""
        account = self._account = self._of[job]
        self._job, self._is_cut, self.taken, self._is_free = job, False, 0, False
        if self._limited and account in self._not_begun(account):
            self._open(account, job)
        if not self._limited or self._left[account] > 0:
            return True
        self._note(job)
        return False

    def close(self, rows: AnyArray) -> None:
        """Give what the accounts of these jobs have left to those that have not begun. Call it after the last of
        their jobs."""
        if not self._limited:
            return
        for account in dict.fromkeys(self._of[job] for job in rows.tolist()):
            # What an account has beyond its part was never taken from the others.
            self._leave_out(account, max(self._left.get(account, 0) - self._beyond.get(account, 0), 0))
            self._left[account] = 0

    def share_rest(self, jobs: Collection[int]) -> list[int]:
        """Share what all accounts have left among those of ``jobs`` that were not tried. Return these jobs, to be tried
        now, in the order in which they would have been. Call it after the last job, until it returns none."""
        cut = {account: [job for job in noted if job in jobs] for account, noted in self._cut.items()}
        cut = {account: noted for account, noted in cut.items() if noted}
        if not cut:
            return []
        # What an account has beyond its part was never taken from the others.
        rest = self._free + sum(self._kept.values())
        rest += sum(max(left - self._beyond[each], 0) for each, left in self._left.items())
        parts = _equal_parts(rest, list(cut))
        if not any(parts.values()):
            return []
        self._free, self._kept = rest - sum(parts.values()), dict.fromkeys(self._kept, 0)
        self._left, self._beyond = dict.fromkeys(self._left, 0), dict.fromkeys(self._beyond, 0)
        cut = {account: noted for account, noted in cut.items() if parts[account]}
        for account, noted in cut.items():
            self._left[account] = parts[account]
            for job in noted:
                del self._cut[account][job]
        return [job for noted in cut.values() for job in noted]

    # -- steps --------------------------------------------------------------------------------------------------------

    def spend(self, steps: int = 1) -> bool:
        """Take steps for the current job. Return False if none was left: then end its search."""
        if self.spend_besides(steps):
            return True
        self._note(self._job)
        return False

    def spend_besides(self, steps: int) -> bool:
        """Take steps for what is reported beside the result of the current job. Return False if none was left: the
        result holds, and the next job of the account has no step."""
        account = self._account
        self.taken += steps
        if account is None or not self._limited or self._is_free:
            return True
        if account not in self._first:
            self._first[account] = _FirstJob(self._job, self._allowance(account))
        if (missing := steps - self._left[account]) > 0:
            self._left[account] += self._from_reserve(account, missing)
        if self._left[account] < steps:
            # Nothing is left, so that it makes no difference in how many parts steps are taken.
            self._left[account] = 0
            return False
        self._left[account] -= steps
        self._spent[account] = self._spent.get(account, 0) + steps
        return True

    def is_first(self, key: Hashable) -> bool:
        """Return True at the first call with a key."""
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def was_cut(self, job: int) -> bool:
        """Return True if a job had no step left in this run of the action."""
        return job in self._cut.get(self._of[job], ())

    def is_paid(self, key: Hashable) -> bool:
        """Return True if ``spend_once`` or ``paid`` was called for an answer since the last change."""
        return (self._account, self.changes, key) in self._paid

    def paid(self, key: Hashable) -> None:
        """Record that an answer was computed and its steps were taken."""
        self._paid.add((self._account, self.changes, key))

    def is_free(self, key: Hashable) -> bool:
        """Return True, and count no step of the current job, if the answer to ``key`` is paid."""
        # Until the next job begins: what the session has paid for may be used again by equal jobs without steps of
        # theirs.
        self._is_free = self.is_paid(key)
        return self._is_free

    def is_account_of(self, jobs: list[int]) -> bool:
        """Return True if all of these jobs take their steps where the current one does, and none is postponed."""
        account = self._account
        return account not in self._resume and all(self._of[job] == account for job in jobs)

    def has_more_than(self, steps: int) -> bool:
        """Return True if the account of the current job has more steps left than so many."""
        account = self._account
        if account is None or not self._limited:
            return not self._limited
        return self._left[account] + sum(self._offered(account)) > steps

    def is_cut(self) -> bool:
        """Return True if the current job had no step left, so that its failure proves nothing."""
        return self._is_cut

    def spend_once(self, key: Hashable, steps: int) -> bool:
        """Take the steps of an answer that the session may have had before. Return False if none was left."""
        # Once per account and action: the second use of an answer costs the session nothing, whether or not it was in
        # the memo when the cycle began (rule 5).
        answer = self._account, self.changes, key
        if answer in self._paid:
            return True
        if not self.spend(steps):
            return False
        self._paid.add(answer)
        return True

    # -- the end ------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Trace the jobs that were cut, and note where the next cycle goes on."""
        if self._limited:
            self._of_cycle.took(sum(self._spent.values()), self._granted - self._reserve - sum(self._for_cut.values()))
        notes = self._ssn.snapshot.notes
        for account in dict.fromkeys(self._of.values()):
            jobs = list(self._cut.get(account, ()))
            if jobs:
                spent = self._spent.get(account, 0)
                self._ssn.trace.tell_of_jobs(np.array(jobs), SearchCut(self._action, spent))
                # A job that alone needs more than its account has must not hold back those after it.
                first = self._first.get(account)
                alone = len(jobs) > 1 and first is not None and first.row == jobs[0]
                self._ssn.notes[self._key(account)] = float(self._digest(jobs[1] if alone else jobs[0]))
            # The account was worked off, so its note must go. The store drops a note that is NaN; one that is left out
            # stays.
            elif self._key(account) in notes:
                self._ssn.notes[self._key(account)] = float("nan")

    # -- accounts -----------------------------------------------------------------------------------------------------

    def _account_of(self, job: int) -> Account:
        """Return whose steps a job takes."""
        jobs = self._ssn.tables.jobs
        return int(jobs.queue[job]), jobs.groups[job].namespace

    def _open(self, account: Account, job: int) -> None:
        """Give an account its part. ``job``: the one with which it begins."""
        namespace = _namespace(account)
        if namespace in self._new:
            # A part of what is left, so that later namespaces also get what earlier ones did not use.
            self._kept[namespace] = self._free // len(self._new)
            self._free -= self._kept[namespace]
            self._waiting[namespace] = self._new.pop(namespace)
        elif self._free and not self._new:
            self._share_free()
        waiting = self._waiting[namespace]
        part = self._kept[namespace] // len(waiting)
        waiting.remove(account)
        self._kept[namespace] -= part
        self._left[account] = max(part, FLOOR)
        self._beyond[account] = self._left[account] - part

    def _not_begun(self, account: Account) -> set[Account]:
        """Return the accounts of a namespace that have not begun."""
        namespace = _namespace(account)
        return self._new.get(namespace) or self._waiting.get(namespace, set())

    def _leave_out(self, account: Account, left: int) -> None:
        """End an account that may not have begun. What it has left is for others of its namespace, or else for all."""
        namespace, waiting = _namespace(account), self._not_begun(account)
        waiting.discard(account)
        if namespace in self._kept and waiting:
            self._kept[namespace] += left
            return
        if not waiting:
            self._new.pop(namespace, None)
        self._free += left + self._kept.pop(namespace, 0)

    def _share_free(self) -> None:
        """Give what is free to the namespaces that have accounts to begin, if all namespaces have begun."""
        # Only then: before, what is free is for namespaces that have not begun yet.
        open_ones = [namespace for namespace, waiting in self._waiting.items() if waiting]
        part = self._free // len(open_ones)
        self._free -= part * len(open_ones)
        for namespace in open_ones:
            self._kept[namespace] += part

    def _from_reserve(self, account: Account, steps: int) -> int:
        """Take steps for the current job of an account out of the reserve, as far as it goes. Return how many."""
        for_cut, others = self._offered(account)
        found = min(steps, for_cut)
        more = min(steps - found, others)
        if found:
            self._for_cut[_namespace(account)] -= found
        self._reserve -= more
        if found + more:
            self._first[account].allowed -= found + more
        return found + more

    def _offered(self, account: Account) -> tuple[int, int]:
        """Return what the reserve still has for the current job of an account: of what is kept for accounts that were
        cut, and of the rest."""
        # Taken when it is needed and not when the account begins: a storm whose jobs are refuted at once would hold the
        # whole reserve in every cycle.
        first = self._first.get(account) or _FirstJob(self._job, self._allowance(account))
        if first.row != self._job:
            return 0, 0
        for_cut = min(first.allowed, self._for_cut[_namespace(account)]) if account in self._was_cut else 0
        return for_cut, min(first.allowed - for_cut, self._reserve)

    def _allowance(self, account: Account) -> int:
        """Return what the current job may take out of the reserve if it is the first of its account."""
        return max(self._least(self._job) - self._left[account], 0)

    def _note(self, job: int) -> None:
        """Note a job that was cut, or not tried."""
        self._is_cut = True
        self._cut.setdefault(self._of[job], {})[job] = None

    # -- from cycle to cycle ------------------------------------------------------------------------------------------

    def _resumed(self) -> dict[Account, int]:
        """Return the job with which each account goes on."""
        notes, found = self._ssn.snapshot.notes, dict[Account, int]()
        # Most cycles begin without such a note, and a digest of every waiting job would be computed for nothing.
        if not any(key.startswith(_prefix(self._name)) for key in notes):
            return found
        at = {account: notes.get(self._key(account)) for account in dict.fromkeys(self._of.values())}
        for job, account in self._of.items():
            if at[account] is not None and at[account] == self._digest(job):
                found.setdefault(account, job)
        return found

    def _key(self, account: Account) -> str:
        """Return the name of an account's note."""
        queue, namespace = account
        return f"{_prefix(self._name)}{self._ssn.tables.queues.names[queue]}/{namespace}"

    def _digest(self, job: int) -> int:
        """Return the number that denotes a job in a note."""
        # Not hash(), which differs from process to process. If two jobs have the same number, the wrong one of them
        # comes first in one cycle, which is harmless.
        return crc32(self._ssn.tables.jobs.uids[job].encode())


def _namespace(account: Account) -> str:
    return account[1]


def _equal_parts(steps: int, accounts: Sequence[Account]) -> dict[Account, int]:
    """Return an equal part of some steps for each namespace, in equal parts for its accounts."""
    count = Counter(map(_namespace, accounts))
    return {account: steps // len(count) // count[_namespace(account)] for account in accounts}


def _prefix(name: str) -> str:
    """Return how the names of a budget's notes begin."""
    return f"{_NOTE}.{name}."
