"""Turn one mechanism off within this process. No mechanism changes a decision, so the product needs no switch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from msgspec import Struct

from pumice.columns.column import Column
from pumice.framework.memo import Memo

#: What replaces a function: it gets the function and its arguments.
Plain = Callable[..., Any]


class Switch(Struct, frozen=True):
    """``modules``: those to which the memo gives nothing back. ``plain``: functions by ``module:name``, and what takes
    their place. ``workloads``: where the mechanism is measured."""

    what: str
    workloads: tuple[str, ...]
    modules: tuple[str, ...] = ()
    plain: dict[str, Plain] = {}


def _nothing(*_: object, **__: object) -> None:
    return None


def _no(*_: object, **__: object) -> bool:
    return False


def _empty(*_: object, **__: object) -> list[int]:
    return []


def _chosen(_: object, __: object, count: int, choose: Callable[[int], list[int]]) -> list[int]:
    """Instead of placements chosen ahead: those that are needed, now."""
    return choose(count)


def _searched(following: Any, stmt: Any, part: Any) -> Any:
    """Instead of a repeated solution: a search for each job."""
    from pumice.kai.engine.solve import solve

    return solve(following._ssn, stmt, part, following._rules, following._waiting, following._sorted)


def _made_anew(memo: Memo, world: Any, name: str) -> None:
    """Instead of the version that a plugin's column had in the last cycle: a new one, for each row too."""
    column = world.columns[name]
    column.shared = Column.move
    if column.stamps is not None:
        column.stamps[:] = world.tables.versions.next()
    world.begun_with[name] = column.array, column.version


def _of(*modules: str) -> tuple[str, ...]:
    return tuple(f"pumice.{module}" for module in modules)


_PLUGINS = ("demo, many plugins", "philly 1d, many plugins")
_REPORTS = ("moving, reports", "reports")
_IDLE = ("idle 1k, 100 wait", "idle 10k, 100 wait")

SWITCHES: dict[str, Switch] = {
    "memo": Switch("the memo as a whole", ("gang", "topo", "philly 2d", "kai-alloc"), ("pumice.",)),
    "columns-of-plugins": Switch(
        "versions of plugins' columns, carried to the next cycle",
        ("philly 2d", "starving", "demo"),
        plain={"pumice.framework.memo:Memo.end": _nothing, "pumice.framework.memo:Memo.begin_column": _made_anew},
    ),
    "quiet": Switch(
        "idle cycles that open no plugin",
        ("idle 1k", "idle 10k"),
        _of("framework.cycle.session", "framework.cycle.closing"),
    ),
    "hooks": Switch("tiers and switches of a policy, resolved", ("demo", "philly 2d"), _of("framework.plugin.hooks")),
    "class-fit": Switch(
        "nodes and scores of a class, with changed rows",
        ("topo", "topo, tier 1", "gang, 2k nodes"),
        _of("placing.feasibility"),
    ),
    "derived": Switch(
        "what follows from nodes and a class", ("philly 2d", "unique", "topo", "demo"), _of("placing.derived")
    ),
    "offers": Switch("devices that can be claimed", ("claims", "kai-claims"), _of("placing.claims.offers")),
    "together": Switch(
        "tasks of a gang chosen together",
        ("gang", "topo", "spread"),
        plain={"pumice.placing.batch:Placing.run": _empty},
    ),
    "k-best": Switch(
        "equal tasks by merging the best nodes (k_best), and node fill state",
        ("gang", "topo", "spread", "affinity"),
        plain={"pumice.placing.batch:Placing._said": _nothing},
    ),
    "speculative": Switch(
        "speculative batches of unequal tasks",
        ("unique", "hopeless", "philly 2d"),
        plain={"pumice.placing.batch:Placing._guessed": _empty},
    ),
    "prefetch": Switch(
        "nodes chosen ahead for equal tasks",
        ("gang", "philly 2d", "kai-alloc"),
        plain={
            "pumice.placing.prefetch:PrefetchedPlacements.next": _chosen,
            "pumice.placing.prefetch:PrefetchedPlacements.none_is_left": _no,
        },
    ),
    "failures": Switch(
        "failures shared by equal jobs and kept", ("philly 2d", "demo"), _of("volcano.failures.failures")
    ),
    "trials": Switch(
        "trials of equal tasks in a domain", ("topo", "topo, tier 1", "gangreclaim"), _of("volcano.failures.trials")
    ),
    "candidates": Switch(
        "what may leave a node", ("preempt 1k", "starving 1k", "moving, full"), _of("volcano.eviction.candidates")
    ),
    "refuted": Switch(
        "nodes where too little may leave",
        ("starving", "preempt", "philly 1d, evictions", "demo, evictions"),
        _of("volcano.eviction.refuted_nodes"),
    ),
    "sums": Switch(
        "sums over all jobs and pods: amounts of queues, missing pods of gangs, jobs with gated pods",
        _IDLE,
        _of("volcano.queues.amounts", "volcano.queues.gates", "volcano.plugins.gang"),
    ),
    "statuses": Switch("statuses that need no write", ("philly 2d", "starving", "demo"), _of("volcano.status.closing")),
    "statuses-kai": Switch("statuses that need no write, KAI", ("kai-alloc, small", "kai-full"), _of("kai.status")),
    "gpu-groups": Switch(
        "nodes with shared GPUs for a request",
        ("moving, shares, KAI", "full, shares, KAI"),
        _of("kai.engine.placement.shared_gpus"),
    ),
    "tree-order": Switch("the tree of queues", ("kai-alloc", "kai-alloc, small"), _of("kai.engine.tree_order")),
    "proportion-kai": Switch("keys of queues, KAI", ("moving, KAI", "full, KAI"), _of("kai.plugins.proportion")),
    "single-task": Switch(
        "the repeated solution of one task",
        ("kai-reclaim", "kai-preempt"),
        plain={"pumice.kai.engine.single_task:Following.solve": _searched},
    ),
    "no-place-kai": Switch(
        "parts of jobs that find no place, KAI",
        ("kai-queues", "kai-victims"),
        _of("kai.engine.placement.without_place"),
    ),
    "equal-jobs-kai": Switch(
        "equal jobs that fail alike, KAI",
        ("kai-full", "kai-unschedulable"),
        plain={"pumice.kai.engine.equivalence:EqualJobs._is_shared": _no},
    ),
    "refutation": Switch(
        "jobs refuted by counting, KAI",
        ("kai-topologies", "kai-groups", "kai-victims"),
        plain={
            f"pumice.kai.engine.{module}:{name}": _no
            for module, names in (
                ("placement.place_part", ("lacks_domain", "lacks_room")),
                ("search", ("is_too_large", "lacks_empty_domain")),
            )
            for name in names
        },
    ),
    "no-domain": Switch(
        "gangs that found no domain, KAI", ("kai-tries", "kai-topologies"), _of("kai.plugins.topology")
    ),
    "ranking": Switch(
        "queues kept in order, KAI",
        ("kai-queues", "kai-tries"),
        plain={"pumice.kai.engine.tree_order:Ranking.applies": _no},
    ),
    "free-gpus": Switch(
        "free GPUs of nodes, and what a placement would cost",
        ("moving, pumice", "moving 2k, pumice"),
        _of("ours.free_gpus", "ours.plugins.gpuplacement"),
    ),
    "capacity": Switch(
        "the tree of queues in capacity",
        ("tree 1k", "moving, tree"),
        _of("volcano.plugins.capacity"),
    ),
    **{
        name: Switch(
            f"what `{name}` computes of the cluster", workloads, _of(f"volcano.plugins.{name.replace('-', '_')}")
        )
        for name, workloads in {
            "overcommit": ("moving", "moving, waiting"),
            "drf": _IDLE,
            "cdp": ("idle 1k, cdp", "idle 10k, cdp"),
            **dict.fromkeys(("numa-aware", "pdb"), _REPORTS),
            **dict.fromkeys(("sla", "tdm"), _PLUGINS),
        }.items()
    },
}


@contextmanager
def off(switch: Switch | None) -> Iterator[None]:
    """Run without a mechanism; None: with all of them. The memo costs as many calls either way."""
    modules = switch.modules if switch else ()
    with ExitStack() as stack:
        for name, plain in _memo_without(modules).items():
            stack.enter_context(patch.object(Memo, name, plain))
        for place, plain in (switch.plain if switch else {}).items():
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            owner: Any = import_module(module)
            for each in owners:
                owner = getattr(owner, each)
            stack.enter_context(patch.object(owner, name, plain))
        yield


def _memo_without(modules: tuple[str, ...]) -> dict[str, Plain]:
    """The methods of the memo, which keep nothing for some modules and answer them that nothing is known."""

    def is_off() -> bool:
        # The module that called the method of the memo. The memo's own calls are part of another answer.
        name: str = sys._getframe(2).f_globals["__name__"]
        return name != Memo.__module__ and name.startswith(modules) if modules else False

    get, recall, keep, by_row = Memo.get, Memo.recall, Memo.keep, Memo.by_row
    rows_kept, keep_rows = Memo.rows_kept, Memo.keep_rows

    def get_(memo: Memo, question: Any, rests_on: Any, build: Any, size: int = 0) -> Any:
        return build() if is_off() else get(memo, question, rests_on, build, size)

    def recall_(memo: Memo, question: Any, rests_on: Any) -> Any:
        return None if is_off() else recall(memo, question, rests_on)

    def keep_(memo: Memo, question: Any, rests_on: Any, answer: Any, size: int = 0) -> Any:
        return answer if is_off() else keep(memo, question, rests_on, answer, size)

    def by_row_(memo: Memo, question: Any, rests_on: Any, stamps: Any, build: Any) -> Any:
        if not is_off():
            return by_row(memo, question, rests_on, stamps, build)
        found = build(np.arange(len(stamps)))
        found.setflags(write=False)
        return found

    def rows_kept_(memo: Memo, question: Any, *stamps: Any) -> Any:
        return np.zeros(len(stamps[0]), dtype=bool) if is_off() else rows_kept(memo, question, *stamps)

    def keep_rows_(memo: Memo, question: Any, rows: Any, *stamps: Any) -> None:
        if not is_off():
            keep_rows(memo, question, rows, *stamps)

    plain: tuple[Plain, ...] = (get_, recall_, keep_, by_row_, rows_kept_, keep_rows_)
    return {each.__name__[:-1]: each for each in plain}
