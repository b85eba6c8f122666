"""Binds wait to be sent while nodes go and pods are deleted: none is sent to a node that is gone, and gangs stay whole.

Worlds by seed. Each runs cycles, sends the decided binds in any order, and lets things happen to nodes and pods between
two of them. The laws are checked at each bind, against the cluster as it is and a plain count of the gang.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.binding.bind import Binder
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.model.decisions import Bind
from pumice.model.events import Gone, Seen
from pumice.model.node import Node, Taint
from pumice.model.pod import Pod, Toleration
from pumice.runtime.loop import Loop
from pumice.state.store import Store
from pumice.testing.build import node, pod, podgroup, policy, queue
from tests.unit.kube.silence import SILENT

WORLDS = range(40)
TURNS = 5
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoExecute")
TOLERANT = (Toleration("", "Exists"),)
CONF = """
actions: "enqueue, allocate, backfill"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]
"""


class World:
    """A cluster with gangs. ``sent``: how many binds were; ``kept_back``: how many were given back unsent."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        self.cluster = KubeCluster(SILENT)
        assert isinstance(self.cluster._binder, Binder)
        self.binder = self.cluster._binder
        self.binder._client = self  # type: ignore[assignment]
        self.loop = Loop(Store(), policy(CONF), self.cluster)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.minimum: dict[str, int] = {}
        self.decided: dict[str, Node] = {}  # by UID of a pod: its node as the cycle knew it
        self.unheard: list[str] = []  # pods that are bound, of which no event has come
        self.made = self.sent = self.kept_back = 0
        self.cluster.sink([Seen(queue("default"))])
        for name in "abcd"[: dice.randint(2, 4)]:
            self.new_node(name)
        for name in ("g0", "g1", "g2")[: dice.randint(1, 3)]:
            size = dice.randint(1, 6)
            self.minimum[name] = dice.randint(1, size)
            self.cluster.sink([Seen(podgroup(name, self.minimum[name], phase="Inqueue"))])
            for number in range(size):
                self.new_pod(f"{name}-{number}", name, tolerant=dice.random() < 0.2)

    # -- what happens

    def new_node(self, name: str) -> None:
        self.made += 1
        self.see_node(node(name, self.dice.randint(3, 9), uid=f"{name}-{self.made}"))

    def see_node(self, found: Node) -> None:
        self.nodes[found.name] = found
        self.cluster.sink([Seen(found)])

    def new_pod(self, name: str, group: str, *, tolerant: bool) -> None:
        self.made += 1
        fields = {"tolerations": TOLERANT} if tolerant else {}
        found = replace(pod(name, group, self.dice.randint(1, 3), **fields), uid=f"{name}-{self.made}")
        self.pods[found.key] = found
        self.cluster.sink([Seen(found)])

    def happens(self) -> None:
        dice, name = self.dice, self.dice.choice(sorted(self.nodes))
        match dice.randrange(8):
            case 0 if len(self.nodes) > 1:
                self.node_goes(name)
            case 1:
                self.node_goes(name)
                self.new_node(name)
            case 2:
                self.see_node(replace(self.nodes[name], unschedulable=not self.nodes[name].unschedulable))
            case 3:
                taints = () if self.nodes[name].taints else (NOT_READY,)
                self.see_node(replace(self.nodes[name], taints=taints))
            case 4:
                self.see_node(replace(self.nodes[name], labels={"number": str(self.made)}))
            case 5:
                self.pod_goes(dice.choice(sorted(self.pods)))
            case 6:
                self.new_node(f"n{self.made}")
            case _:
                self.apply()

    def node_goes(self, name: str) -> None:
        self.apply()
        del self.nodes[name]
        self.cluster.sink([Gone(Node, name)])
        for key in [key for key, each in self.pods.items() if each.node_name == name]:
            self.pod_goes(key)

    def pod_goes(self, key: str) -> None:
        """Its controller makes another one."""
        self.apply()
        gone = self.pods.pop(key)
        self.cluster.sink([Gone(Pod, key)])
        self.new_pod(gone.name, gone.name.partition("-")[0], tolerant=bool(gone.spec.tolerations))

    def apply(self) -> None:
        """Let events of binds arrive."""
        for key in self.unheard:
            self.cluster.sink([Seen(self.pods[key])])
        self.unheard.clear()

    # -- the scheduler

    async def turn(self, *, calm: bool = False) -> None:
        """Run a cycle, and send what it decided."""
        before = dict(self.nodes)
        self.loop.step(float(self.made))
        for each in self.loop.decisions:
            self.decided[each.uid] = before[each.node]
        waiting = [bind.pod for bind in self.cluster.in_flight.binds() if bind.pod not in self.unheard]
        self.dice.shuffle(waiting)
        for key in waiting:
            while not calm and self.dice.random() < 0.3:
                self.happens()
            entry = self.cluster.in_flight.of(key)
            if entry is None or entry.accepted is not None:
                continue
            before_it = self.sent
            assert await self.binder.send(entry), entry.why
            self.kept_back += self.sent == before_it
        if calm or self.dice.random() < 0.5:
            self.apply()

    async def post(self, path: str, body: dict[str, Any]) -> None:
        """Bind a pod, as the API server. Raises: AssertionError if a law is broken."""
        key = "/".join((body["metadata"]["namespace"], body["metadata"]["name"]))
        found, name = self.pods[key], body["target"]["name"]
        assert (found.uid, found.node_name) == (body["metadata"]["uid"], ""), f"{key} is another pod, or bound"
        assert self.takes(found, name) == "", f"{key}: {self.takes(found, name)}"
        group = found.name.partition("-")[0]
        assert self.whole(group) >= self.minimum[group], f"{key}: {self.whole(group)} pods of {group}"
        self.pods[key] = replace(found, node_name=name, phase="Running")
        self.unheard.append(key)
        self.sent += 1

    def takes(self, found: Pod, name: str) -> str:
        """Return what has happened to the node of a decided bind, "" for nothing that matters."""
        now, then = self.nodes.get(name), self.decided[found.uid]
        if now is None or now.uid != then.uid:
            return f"{name} is gone"
        changed = (now.unschedulable and not then.unschedulable) or set(now.taints) - set(then.taints)
        return f"{name} was cordoned or is not ready" if changed and not found.spec.tolerations else ""

    def bound(self, group: str) -> int:
        return sum(bool(each.node_name) for each in self.pods.values() if each.name.startswith(f"{group}-"))

    def can_be_sent(self, bind: Bind) -> bool:
        found = self.pods.get(bind.pod)
        current = found is not None and found.uid == bind.uid and not found.node_name
        return found is not None and current and not self.takes(found, bind.node)

    def whole(self, group: str) -> int:
        """Return how many of a gang are bound, or may still be."""
        waiting = [bind for bind in self.cluster.in_flight.binds() if bind.pod.startswith(f"ns/{group}-")]
        return self.bound(group) + sum(map(self.can_be_sent, waiting))


@pytest.mark.parametrize("part", range(2))
async def test_what_waits_is_looked_at_before_it_is_sent(part: int) -> None:
    sent = kept_back = 0
    for seed in WORLDS[part::2]:
        world = World(seed)
        for _ in range(TURNS):
            await world.turn()
        # Room for all: what was given back is decided again, and every gang is whole.
        world.apply()
        for number in range(3):
            world.see_node(node(f"spare-{number}", 64, uid=f"spare-{number}"))
        for _ in range(3):
            await world.turn(calm=True)
        waits = sorted(key for key, each in world.pods.items() if not each.node_name)
        assert waits == [], f"seed {seed}"
        sent, kept_back = sent + world.sent, kept_back + world.kept_back
    assert sent > 5 * len(WORLDS[part::2])
    assert kept_back > len(WORLDS[part::2]) // 2
