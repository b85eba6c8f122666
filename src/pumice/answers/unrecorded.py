"""What an obstacle is about, where the cycle recorded nothing of it for the job: with nodes, claims or amounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pumice.answers.amounts import amount_text
from pumice.answers.codes import WORDS, Code
from pumice.answers.lifts import Lift
from pumice.answers.requests import waiting_amounts
from pumice.answers.world import World
from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim
from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.resources import MEMORY
from pumice.model.volumes import PersistentVolumeClaim
from pumice.placing.filters.nodes import tolerates
from pumice.reasons.selection import text_of
from pumice.reasons.words import counted, joined, names, number

#: Source: kube-scheduler, tainttoleration: a taint of another effect keeps no pod off.
_KEEP_OFF = ("NoSchedule", "NoExecute")


def meaning_of(each: Lift) -> str:
    """Return what an obstacle is about, for any job."""
    return f"too little {each.name} is free on the nodes that it may use" if each.name else WORDS[each.code].meaning


def sentence_of(world: World, tables: Tables, job: str, each: Lift, row: int) -> str:
    """Return what an obstacle of a job is about. ``tables``: of the cycle as things are. ``row``: of the job."""
    specs = [pod.spec for pod in world.pods_of.get(job, ()) if not pod.node_name]
    found: list[str] = []
    if each.code is Code.TAINT and specs:
        found = [f"{node.name} ({why})" for node in world.nodes if (why := _kept_off(specs[0], node))]
    elif each.code is Code.VOLUME:
        claims = [name for spec in specs for name in spec.claim_names]
        found = _of_claims(job, claims, lambda key: _volume_of(world, key))
    elif each.code is Code.DEVICE:
        claims = [name for spec in specs for name in spec.resource_claims]
        found = _of_claims(job, claims, lambda key: _devices_of(world, key))
    return f"{meaning_of(each)}: {names(found)}" if found else _with_amounts(tables, each, row)


def _with_amounts(tables: Tables, each: Lift, row: int) -> str:
    column = tables.axis.column.get(each.name, -1)
    asked = float(waiting_amounts(tables)[row, column]) if column >= 0 else 0.0
    if not asked:  # shares of GPUs are no amount of a resource
        return meaning_of(each)
    free = tables.nodes.future[:, column].clip(min=0.0)
    best, wanted = (number(each.name, value) for value in (float(free.max(initial=0.0)), asked))
    in_all = amount_text(each.name, float(free.sum()))
    return f"after this cycle {in_all} are free, at most {best} on one node; it asks for {wanted}"


def _kept_off(spec: PodSpec, node: Node) -> str:
    """Return the cordon or the first taint that keeps pods off a node, "" if nothing does."""
    if node.unschedulable:
        return "cordoned"
    taints = [taint for taint in node.taints if taint.effect in _KEEP_OFF]
    left = [taint for taint in taints if not any(tolerates(each, taint) for each in spec.tolerations)]
    return text_of(left[0]) if left else ""


def _of_claims(job: str, claims: Iterable[str], of: Callable[[str], tuple[str, str]]) -> list[str]:
    """Return a text for each kind of claims of a job. ``of``: what is said of one, by key, and of several of a kind."""
    space, of_kind = job.partition("/")[0], dict[tuple[str, str], list[str]]()
    for name in dict.fromkeys(claims):
        of_kind.setdefault(of(f"{space}/{name}"), []).append(f"{space}/{name}")
    return [
        f"claim {keys[0]} {one}" if len(keys) == 1 else f"claims {names(keys)} {several}"
        for (one, several), keys in of_kind.items()
    ]


_MISSING = ("does not exist", "do not exist")


def _devices_of(world: World, key: str) -> tuple[str, str]:
    claim = world.objects.get((ResourceClaim, key))
    if not isinstance(claim, ResourceClaim):
        return _MISSING
    if claim.allocation is not None:
        return "has its devices", "have their devices"
    asked = joined([f"{counted(count, 'device')} of class {name}" for name, count in claim.devices])
    return (f"for {asked} has none", f"for {asked} each have none") if asked else ("has no devices", "have no devices")


def _volume_of(world: World, key: str) -> tuple[str, str]:
    claim = world.objects.get((PersistentVolumeClaim, key))
    if not isinstance(claim, PersistentVolumeClaim):
        return _MISSING
    if claim.volume:
        return f"has volume {claim.volume}", f"have volume {claim.volume}"
    kind = f"of class {claim.class_name} " if claim.class_name else ""
    size = amount_text(MEMORY, claim.size).removesuffix(" of memory")
    return f"{kind}for {size} has no volume", f"{kind}for {size} each have no volume"
