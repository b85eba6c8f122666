"""The sentences of blockers about nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pumice.columns.dtypes import EPS
from pumice.framework.cycle.trace import Finding
from pumice.model import blockers as b
from pumice.model.blockers import changes as c
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.reasons.words import amount, are, counted, is_free, joined, names, number, unit, verb

_HOST = "kubernetes.io/hostname"


def _shortage(found: b.Shortage) -> str:
    name, ask = found.resource, number(found.resource, found.each)
    if not found.total:
        asks = f": it asks for {amount(name, found.each, of_memory=True)} a pod" if found.each else ""
        lack = f"{counted(found.looked_at, 'node')} {verb(found.nodes, 'has', 'have')} too little {name}"
        return f"{found.nodes} of {lack}{asks}"
    if found.node:
        total = f"{number(name, found.total)} {unit(name, number(name, found.total))}"
        free = number(name, found.free)
        return f"{found.node} has {total}, {free} {are(free)} free, it asks for {ask} a pod"
    if found.is_too_large:
        with_labels = f" with {joined(found.labels)}" if found.labels else ""
        asks = f"asks for {amount(name, found.each, of_memory=True)} a pod"
        return f"{asks}; the largest node{with_labels} has {number(name, found.largest)}"
    if found.all_nodes:
        return _of_selected(found)
    if found.beside is not None:
        other = amount(found.beside.resource, found.beside.value)
        asks = f"it asks for {amount(name, found.each)} a pod"
        return f"{other} but only {amount(name, found.free, of_memory=True)} are free; {asks}"
    if found.free - found.each >= -EPS:
        most = f"at most {number(name, found.best)} on one node"
        return f"{is_free(name, found.free)}, {most}, it asks for {ask} a pod"
    total, count = number(name, found.total), number(name, found.free)
    return f"{count} of {total} {unit(name, total)} {are(count)} free, it asks for {ask} a pod"


def _node_filter(found: b.NodeFilter) -> str:
    return _with_needs(f"{found.nodes} of {counted(found.looked_at, 'node')}: {found.detail}", found.changes)


def _with_needs(refuse: str, changes: tuple[c.Change, ...]) -> str:
    needs = [_NEEDS[type(change)](change) for change in changes]
    return f"{refuse}; it needs {joined(needs)}" if needs else refuse


_NEEDS: Mapping[type[c.Change], Callable[[Any], str]] = {
    c.OfferDevices: lambda each: f"{counted(each.count, 'free device')} of class {each.device_class}{_on_each(each)}",
    c.OfferVolume: lambda each: (
        f"{counted(each.count, 'volume')} of class {each.storage_class} with {amount('memory', each.size)}"
        f"{_on_each(each)}"
    ),
    c.AttachMore: lambda each: (
        f"{each.nodes or ''} nodes".strip()
        + f" that can{' each' if each.nodes else ''} attach {counted(each.count, 'more volume')} of {each.driver}"
    ),
}


def _on_each(change: c.OfferDevices | c.OfferVolume) -> str:
    return f" on each of {change.nodes} nodes" if change.nodes else ""


def _of_selected(found: b.Shortage) -> str:
    name, count = found.resource, found.looked_at
    what = joined(found.labels) or "what its required node affinity wants"
    of_all = f"{count} of {counted(found.all_nodes, 'node')} {verb(count, 'has', 'have')} {what}"
    free, total, whose = number(name, found.free), number(name, found.total), "its" if count == 1 else "their"
    spread = count > 1 and found.free >= found.each
    most = f", at most {number(name, found.best)} on one node" if spread else ""
    share = f"{free} of {whose} {total} {unit(name, total)} {are(free)} free"
    return f"{of_all}: {share}{most}, it asks for {number(name, found.each)}"


def _fragments(found: b.Fragments) -> str:
    parts = []
    for part in found.parts[:2]:
        enough = part.enough
        has = f"{part.node} has the {unit(enough.resource)} ({number(enough.resource, enough.value)} free)"
        parts.append(" and ".join((has, *map(_left, part.has))))
    return f"{', '.join(parts)}; it asks for {joined([amount(each.resource, each.value) for each in found.asks])} a pod"


def _left(left: b.Amount) -> str:
    """``2 cores free``, ``no GPU``"""
    return f"{amount(left.resource, left.value)} free" if left.value >= EPS else f"no {unit(left.resource, '1')}"


def _no_such_node(found: b.NoSuchNode) -> str:
    if not found.wants:
        return "no node matches its required node affinity"
    if len(found.wants) > 1:
        return f"no node has {joined(found.wants)} together"
    if found.is_label:
        there = [f"; {count} {verb(count, 'has', 'have')} {label}" for label, count in found.found]
        return f"no node has the label {found.label}{''.join(there)}"
    if found.place:
        first, *rest = found.found
        listed = [f"{first[1]} {verb(first[1], 'is', 'are')} in {first[0]}", *(f"{n} in {name}" for name, n in rest)]
        return f"no node is in {found.place} {found.value}; {', '.join(listed)}"
    there = [f"{count} {verb(count, 'has', 'have')} {found.label}={value}" for value, count in found.found]
    return f"no node has {found.wants[0]}" + (f"; {joined(there)}" if there else "")


def _closed(found: b.Closed) -> str:
    parts: list[str] = []
    for by in found.by:
        of_all = f"{by.nodes} of {counted(found.looked_at, 'node')}" if not parts else f"{by.nodes}"
        match by.kind:
            case b.CORDONED:
                parts.append(f"{of_all} {verb(by.nodes, 'is', 'are')} cordoned")
            case b.NOT_READY:
                parts.append(f"{of_all} {verb(by.nodes, 'is', 'are')} not ready (taint {by.taint})")
            case b.UNREADABLE:
                parts.append(f"{of_all} {verb(by.nodes, 'holds', 'hold')} what cannot be read")
            case _:
                has = f"{of_all} {verb(by.nodes, 'has', 'have')} the taint {by.taint}"
                parts.append(f"{has}, which it does not tolerate")
    return "; ".join(parts)


def _room_on_closed(found: b.RoomOnClosed) -> str:
    count, rest = found.by.nodes, number(found.free.resource, found.left)
    match found.by.kind:
        case b.CORDONED:
            why = f"which {verb(count, 'is', 'are')} cordoned; elsewhere"
        case b.UNREADABLE:
            why = f"which {verb(count, 'holds', 'hold')} what cannot be read; elsewhere"
        case _:
            why = f"which {verb(count, 'has', 'have')} the taint {found.by.taint}; without it,"
    free = is_free(found.free.resource, found.free.value)
    return f"{free} on {names(found.nodes, 2)}, {why} {rest} {are(rest)} free"


def _port(found: b.PortTaken) -> str:
    if found.own:
        taking = f"{counted(found.nodes, 'node')} can take one"
        return f"each pod needs port {found.port} on a node of its own; {taking}"
    return f"port {found.port} is taken on {found.nodes} of {counted(found.looked_at, 'node')}"


def _kept_apart(found: b.KeptApart) -> str:
    place = "node" if found.topology == _HOST else found.topology.rpartition("/")[2]
    more = f"; it needs {counted(found.wanted, f'more {place}')}" if found.wanted > 1 else ""
    where = f"one {place}" if found.places == 1 else f"each of {counted(found.places, place)}"
    if found.by_them:
        return f"{where} has a pod that may not be near one with {found.selector}{more}"
    return f"{where} has a pod with {found.selector}, near which it may not run{more}"


def _uneven(found: b.Uneven) -> str:
    place, name = found.topology.rpartition("/")[2], found.free.resource
    more = f"{counted(found.skew, 'more pod')} with {found.selector}"
    would = f"{place} {found.fuller} would have {more} than {place} {found.emptier}"
    free = number(name, found.free.value)
    full = f"{found.emptier} is full: {free} {unit(name, free)} free"
    return f"{would}, at most {found.most} is allowed; {full}"


def _too_many(found: b.TooManyPods) -> str:
    first = f"{found.node} runs {found.pods:,} of at most {counted(found.most, 'pod')}"
    more = f", and {counted(found.others, 'more node')} likewise" if found.others else ""
    return f"{first}{more}; {is_free(found.free.resource, found.free.value)}"


def _shared_claim(found: b.SharedClaim) -> str:
    what = f"{found.kind} {found.name}, which can be used on one node only"
    return f"{found.pods} of its pods share {what}, and no node takes all of them"


def _no_part(found: b.NoPart) -> str:
    part = f"{found.part:g}"
    has = (
        f"{found.node} has {amount(GPU_RESOURCE, 1000.0 * found.gpus)}, {found.free or 'none'} of them with {part} free"
    )
    asks = f"{part} of {'a GPU' if found.devices == 1 else f'{found.devices} GPUs'}"
    return f"{has if found.gpus else f'{found.node} has no GPU'}; it asks for {asks} a pod"


def _held_by_others(found: b.HeldByOthers) -> str:
    name = found.resource
    by = f"{counted(found.pods, 'pod')} that {found.scheduler or 'another scheduler'} placed"
    theirs = f"{number(name, found.held)} of {number(name, found.total)} are held by {by}"
    return f"{is_free(name, found.free)}; {theirs}; it asks for {number(name, found.each)}"


def _domain(found: b.Domain) -> str:
    asks = found.asks
    if asks is None:
        return f"no domain of the topology has room for all of it{f' in {found.name}' if found.name else ''}"
    name, ask, most = asks.resource, number(asks.resource, asks.value), number(asks.resource, found.best)
    which = f"domain of {found.label}" if found.label else f"HyperNode of tier {found.tier}"
    if found.is_size:
        largest = f"the largest {which} has {amount(name, found.best)}"
        above = f"; tier {found.above[0]} has {number(name, found.above[1])}" if found.above else ""
        return f"{largest}, it asks for {ask} within one{above}"
    limit = f"at most {most} in one {which}"
    return f"{is_free(name, found.free)}, {limit}, it asks for {ask} within one"


SENTENCES: Mapping[type[Finding], Callable[[Any], str]] = {
    b.NodeFilter: _node_filter,
    b.Shortage: _shortage,
    b.Fragments: _fragments,
    b.NoSuchNode: _no_such_node,
    b.Closed: _closed,
    b.RoomOnClosed: _room_on_closed,
    b.PortTaken: _port,
    b.NearNone: lambda found: f"no pod with {found.selector} runs, and it must be near one",
    b.KeptApart: _kept_apart,
    b.Uneven: _uneven,
    b.TooManyPods: _too_many,
    b.NoPart: _no_part,
    b.SharedClaim: _shared_claim,
    b.HeldByOthers: _held_by_others,
    b.NoRoom: lambda _: "no node has room",
    b.NoNode: lambda found: _with_needs("no node takes it", found.changes),
    b.Domain: _domain,
}
