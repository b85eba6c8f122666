"""Which sets of victims a search tries, one after the other, while candidates accumulate in eviction order.

Two generators answer: one frees a single node at a time, the other as few nodes as the whole part needs. Each search is
made with the first, and if it fails once more with the second. Source: KAI solvers (node_local_greedy_generator,
multi_node_gang_generator, sub_scenario_emitter).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Chunk, Part
from pumice.kai.engine.placement.place_part import placer
from pumice.kai.engine.points import MULTI_NODE, NODE_LOCAL, victim_sets
from pumice.kai.engine.victims.bounds import Bound
from pumice.kai.engine.victims.candidates import Candidates
from pumice.kai.engine.victims.domain_room import DomainRoom
from pumice.kai.engine.victims.gpus import free_gpus, gpus_of
from pumice.kai.engine.victims.growth import Growth


class Request:
    """For what a set is sought. ``recorded``: rows of victims that smaller parts needed, which leave in every set.
    ``possible`` (N,): nodes on which the part may be placed before anyone else leaves. ``ruled_out``: chunks that
    counting has passed over. ``domains``: the test that a set must pass."""

    __slots__ = ("candidates", "domains", "part", "possible", "recorded", "ruled_out", "ssn")

    def __init__(
        self, ssn: Session, part: Part, candidates: Candidates, recorded: tuple[int, ...], possible: Bool
    ) -> None:
        self.ssn, self.part, self.candidates = ssn, part, candidates
        self.recorded, self.possible, self.ruled_out = recorded, possible, 0
        self.domains = DomainRoom(ssn, part)

    def bound(self) -> Bound:
        """Return bounds for the part with the recorded victims gone."""
        return Bound(self.ssn, placer(self.ssn).feasible, self.part, self.recorded)


#: Rows of tasks that are evicted together.
Group = Sequence[int]


class Generator(NamedTuple):
    """A generator of sets. ``sets`` yields groups of victims beside the recorded ones."""

    name: str
    sets: Callable[[Request], Iterator[list[Group]]]


def generators(ssn: Session) -> list[Generator]:
    """Return the generators that the policy's plugins name, in their order; both if it names none."""
    # KAI searches for no victims then, so that a policy file from before its generators were plugins loses three
    # actions without a word.
    names = ssn.ask(victim_sets) or [NODE_LOCAL, MULTI_NODE]
    return [Generator(name, _SETS[name]) for name in dict.fromkeys(names)]


def _node_local(request: Request) -> Iterator[list[Group]]:
    """Yield, after each chunk with which the part may fit, for each of its nodes the victims of all jobs that have one
    there. Those of one job are a group."""
    growth = Growth(request.ssn, request.candidates, frozenset(request.recorded), request.bound())
    names = request.ssn.tables.nodes.facts.names
    for chunk in growth:
        # Before the sets are tried, since the search ends with the first that succeeds.
        request.ruled_out = growth.ruled_out
        if request.domains.is_limited and not request.domains.allows((*request.recorded, *growth.rows())):
            continue
        seen: set[frozenset[int]] = set()
        # By name, so that the order in which nodes were added to the cluster does not decide who is evicted.
        for node in sorted(chunk.nodes, key=names.__getitem__):
            rows = growth.with_node(node)
            if (together := frozenset(rows)) not in seen:
                seen.add(together)
                yield _by_job(request.ssn, rows)
    request.ruled_out = growth.ruled_out


def _by_job(ssn: Session, rows: list[int]) -> list[Group]:
    found: dict[int, list[int]] = {}
    for row, job in zip(rows, ssn.tables.tasks.job[rows].tolist(), strict=True):
        found.setdefault(job, []).append(row)
    return list(found.values())


def _multi_node(request: Request) -> Iterator[list[Group]]:
    """Yield, after each chunk with which the part may fit, the victims of the fewest nodes whose GPUs cover what the
    part needs, the smallest nodes first, and then of more and more nodes. Each chunk is a group."""
    bound, chunks = request.bound(), list[Chunk]()
    for chunk in request.candidates.chunks(frozenset(request.recorded)):
        chunks.append(chunk)
        # Freeing more only adds room: once the part may fit it may fit with every further chunk.
        if bound.allows(chunk) and _has_domains(request, chunks):
            yield from _more_and_more(request, chunks)
        else:
            request.ruled_out += 1


def _has_domains(request: Request, chunks: list[Chunk]) -> bool:
    """Return True if the required domains have room once these chunks and the recorded victims are gone."""
    gone = (row for chunk in chunks for row in chunk.rows) if request.domains.is_limited else ()
    return request.domains.allows((*request.recorded, *gone))


def _more_and_more(request: Request, chunks: list[Chunk]) -> Iterator[list[Group]]:
    """Yield the victims on the first nodes, of which each set has more than the one before."""
    on_node: dict[int, list[int]] = {}
    for position, chunk in enumerate(chunks):
        for node in chunk.nodes:
            on_node.setdefault(node, []).append(position)
    capacity = _capacity(request, chunks, on_node)
    need, least = _demand(request)
    # The order of a dictionary is that in which nodes were first seen, which decides between equal capacities.
    # The smallest first, so that large nodes stay whole for tasks that need them. A node that cannot hold the smallest
    # task helps no part.
    nodes = sorted((node for node in on_node if capacity[node] >= least), key=capacity.__getitem__)
    count = _fewest([capacity[node] for node in nodes], need - _elsewhere(request, on_node))
    step = 1
    while count <= len(nodes):
        picked = sorted({position for node in nodes[:count] for position in on_node[node]})
        if picked:
            yield [chunks[position].rows for position in picked]
        if count == len(nodes):
            return
        # Steps double, so that the number of simulations grows with the logarithm of the number of nodes.
        count, step = min(count + step, len(nodes)), 2 * step


def _fewest(capacities: list[float], need: float) -> int:
    """Return how many of the first capacities cover the need; more than there are if they do not."""
    count = 0
    while need > 0 and count < len(capacities):
        need -= capacities[count]
        count += 1
    return count if need <= 0 else len(capacities) + 1


def _capacity(request: Request, chunks: list[Chunk], on_node: Collection[int]) -> dict[int, float]:
    """Return the GPUs of each node that are free, or leave with recorded victims or with these chunks. Milli-GPUs."""
    tables, gpus = request.ssn.tables, free_gpus(request.ssn)
    found = {node: float(gpus[node]) for node in on_node}
    for row in (*request.recorded, *(row for chunk in chunks for row in chunk.rows)):
        node = int(tables.tasks.node[row])
        if node in found:
            found[node] += gpus_of(request.ssn, row)
    return found


def _elsewhere(request: Request, on_node: Collection[int]) -> float:
    """Return the free GPUs of nodes on which no candidate is, recorded victims gone. Milli-GPUs."""
    ssn, tables = request.ssn, request.ssn.tables
    there = request.possible.copy()
    there[list(on_node)] = False
    found = float(free_gpus(ssn)[there].sum())
    return found + sum(gpus_of(ssn, row) for row in request.recorded if there[tables.tasks.node[row]])


def _demand(request: Request) -> tuple[float, float]:
    """Return the GPUs that the part asks for, and those of its smallest task. Milli-GPUs."""
    each = [gpus_of(request.ssn, row) for row in request.part.rows]
    return sum(each), min(each)


_SETS: dict[str, Callable[[Request], Iterator[list[Group]]]] = {NODE_LOCAL: _node_local, MULTI_NODE: _multi_node}
