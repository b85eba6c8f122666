"""deviceshare: which cards pods get, what stands against nodes, and what nodes and pods may get wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pumice.framework.errors import PolicyError
from pumice.model import shared_devices as words
from pumice.model.decisions import DEVICES, Bind
from pumice.model.events import Gone, Seen, Undone
from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.shared_devices import DeviceAsk, DeviceGrant
from pumice.testing.build import Ran, cluster, node, pod, podgroup, pods, policy, resource, run, session
from pumice.testing.devices import shared_gpus, vgpu
from pumice.volcano.devices.cards import CORES, MEMORY, NUM

ON = {"deviceshare.VGPUEnable": True}


def conf(plugins: str = "gang", actions: str = "allocate", **arguments: Any) -> str:
    given = {**(ON if not arguments else {}), **{f"deviceshare.{name}": value for name, value in arguments.items()}}
    named = ", ".join(f"{{name: {each}}}" for each in plugins.split())
    option = {"name": "deviceshare", "arguments": given}
    return f"actions: {actions}\ntiers: [{{plugins: [{named}, {option!r}]}}]".replace("True", "true")


def cards_of(ran: Ran) -> dict[str, str]:
    """The cards that pods were bound to, by pod."""
    binds = [each for each in ran.decisions if isinstance(each, Bind)]
    return {each.pod.partition("/")[2]: said(each)[words.ASSIGNED_IDS_ANNOTATION] for each in binds}


def why(ran: Ran, name: str) -> str:
    """What a pod that waits is told."""
    return next(notice.message for notice in ran.outcome.notices() if notice.pod == f"ns/{name}")


def said(bind: Bind) -> dict[str, str]:
    grant = bind.context[DEVICES]
    assert isinstance(grant, DeviceGrant)
    return dict(grant.annotations)


def has(name: str, where: str, given: str, **more: Any) -> Pod:
    """A pod on its node that says what it has."""
    return pod(name, on=where, annotations={words.ASSIGNED_IDS_ANNOTATION: given}, devices=vgpu(1), **more)


# -- what pods get


def test_a_gang_shares_cards_and_each_pod_says_its_own() -> None:
    store = cluster(shared_gpus("n", 2), podgroup("g", 4), pods("g", 4, cpu="1", devices=vgpu(8000, cores=30)))
    ran = run(store, conf(), now=1_234.5)
    assert cards_of(ran) == {f"g-{i}": f"n-{card},NVIDIA,8000,30:" for i, card in enumerate((1, 1, 0, 0))}
    first = next(each for each in ran.decisions if isinstance(each, Bind))
    assert said(first) == {
        words.ASSIGNED_NODE_ANNOTATION: "n",
        words.ASSIGNED_TIME_ANNOTATION: "1234",
        words.ASSIGNED_IDS_ANNOTATION: "n-1,NVIDIA,8000,30:",
        words.TO_ALLOCATE_ANNOTATION: "n-1,NVIDIA,8000,30:",
        words.BIND_PHASE_ANNOTATION: "allocating",
        words.BIND_TIME_ANNOTATION: "1234",
    }


def test_a_gang_that_does_not_fit_the_cards_as_a_whole_leaves_them_to_others() -> None:
    store = cluster(
        shared_gpus("n", 1),
        podgroup("big", 2),
        podgroup("small", 1, creation=1.0),
        pods("big", 2, devices=vgpu(9000)),
        pods("small", 1, devices=vgpu(9000)),
    )
    assert cards_of(run(store, conf())) == {"small-0": "n-0,NVIDIA,9000,0:"}


@pytest.mark.parametrize(
    ("used", "ask", "fits"),
    [
        pytest.param("n-0,NVIDIA,16000,0:", vgpu(384), True, id="the last memory"),
        pytest.param("n-0,NVIDIA,16000,0:", vgpu(385), False, id="more than is left"),
        pytest.param("n-0,NVIDIA,1,60:", vgpu(1, cores=40), True, id="the last cores"),
        pytest.param("n-0,NVIDIA,1,60:", vgpu(1, cores=41), False, id="more cores than are left"),
        pytest.param("n-0,NVIDIA,1,1:", vgpu(1, cores=100), False, id="all cores are a card of its own"),
        pytest.param("n-0,NVIDIA,1,100:", vgpu(1), False, id="a card of which all cores are taken"),
        pytest.param("n-0,NVIDIA,1,1:", vgpu(), False, id="without memory all of it is asked"),
        pytest.param("", vgpu(number=2), False, id="more cards than there are"),
        pytest.param("gone,NVIDIA,16384,100:", vgpu(), True, id="a card that is not there is not in use"),
        pytest.param("n-0,NVIDIA,x,1:n-0,NVIDIA:", vgpu(), True, id="what cannot be read is not in use"),
        pytest.param("", vgpu(1, mode="mig"), False, id="another mode"),
        pytest.param("", vgpu(1, mode="hami-core"), True, id="the mode of the node"),
        pytest.param("", vgpu(1, use_type="v100,a30"), True, id="one of the types, in any case"),
        pytest.param("", vgpu(1, no_use_type="A30"), False, id="not this type"),
        pytest.param("", vgpu(1, use_id="n-1"), False, id="not this card"),
        pytest.param("", vgpu(1, use_id="x" * 5000), False, id="more than is read"),
    ],
)
def test_what_fits_a_card(used: str, ask: DeviceAsk, fits: bool) -> None:
    store = cluster(shared_gpus("n"), has("old", "n", used), podgroup("g"), pods("g", 1, devices=ask))
    assert bool(run(store, conf()).binds) is fits


def test_cards_that_are_ill_take_nothing_new() -> None:
    ill = shared_gpus("n")
    ill = replace(ill, annotations={words.REGISTER_ANNOTATION: "n-0,10,16384,NVIDIA,false,hami-core:"})
    assert not run(cluster(ill, podgroup("g"), pods("g", 1, devices=vgpu(1))), conf()).binds


@pytest.mark.parametrize(("how", "card"), [("binpack", 0), ("spread", 2), ("", 2)])
def test_which_card_is_first(how: str, card: int) -> None:
    there = [has("a", "n", "n-0,NVIDIA,900,1:"), has("b", "n", "n-1,NVIDIA,500,1:n-1,NVIDIA,1,1:")]
    store = cluster(shared_gpus("n", 3), there, podgroup("g"), pods("g", 1, devices=vgpu(100)))
    assert cards_of(run(store, conf(VGPUEnable=True, SchedulePolicy=how)))["g-0"].startswith(f"n-{card},")


@pytest.mark.parametrize(("weight", "where"), [(10, "b"), (0, "a")])
def test_nodes_with_fuller_cards_are_better_where_that_counts(weight: int, where: str) -> None:
    store = cluster(
        [shared_gpus("a"), shared_gpus("b"), has("old", "b", "b-0,NVIDIA,5000,0:")],
        podgroup("g"),
        pods("g", 1, devices=vgpu(100)),
    )
    ran = run(store, conf(VGPUEnable=True, SchedulePolicy="binpack", ScheduleWeight=weight))
    assert ran.binds == {"ns/g-0": where}


def test_containers_of_one_pod_get_what_the_ones_before_them_leave() -> None:
    each = tuple(sorted({words.VGPU_NUMBER: 1, words.VGPU_MEMORY: 9000}.items()))
    store = cluster(shared_gpus("n", 2), podgroup("g"), pods("g", 1, devices=DeviceAsk((each, (), each))))
    assert cards_of(run(store, conf())) == {"g-0": "n-1,NVIDIA,9000,0:;n-0,NVIDIA,9000,0:"}


GEOMETRIES = {
    "nvidia": {
        "knownMigGeometries": [
            {
                "models": ["A30"],
                "allowedGeometries": [
                    {"group": "g1", "geometries": [{"name": "1g", "memory": 6144, "count": 4}]},
                    {"group": "g2", "geometries": [{"name": "2g", "memory": 12_288, "count": 2}]},
                ],
            }
        ]
    }
}


def test_instances_are_of_one_group_and_given_once() -> None:
    there = has("old", "n", "n-0[g1-1],NVIDIA,6144,0:")
    waiting = [*pods("g", 4, devices=vgpu(5000)), pod("large", "g", devices=vgpu(7000))]
    store = cluster(shared_gpus("n", 1, 24_576, mode="mig"), there, podgroup("g", 1), waiting)
    given = cards_of(run(store, conf(VGPUEnable=True, DeviceConfig=GEOMETRIES)))
    assert given == {f"g-{i}": f"n-0[g1-{place}],NVIDIA,6144,0:" for i, place in enumerate((0, 2, 3))}


def test_a_card_that_nobody_can_cut_takes_nobody() -> None:
    store = cluster(shared_gpus("n", mode="mig"), podgroup("g"), pods("g", 1, devices=vgpu(1)))
    assert not run(store, conf()).binds


# -- GPU sharing


def _sharing(count: int, memory: int, **annotations: str) -> Node:
    has = resource(8, "32Gi", pods=110, **{words.GPU_MEMORY: memory, words.GPU_NUMBER: count})
    return replace(node("n", annotations=annotations), allocatable=has, capacity=has)


def test_memory_is_of_the_first_card_with_so_much_left() -> None:
    ask = DeviceAsk((((words.GPU_MEMORY, 6),),))
    old = pod("old", on="n", devices=ask, annotations={words.GPU_INDEX_ANNOTATION: "1"})
    store = cluster(
        _sharing(4, 40, **{words.UNHEALTHY_IDS_ANNOTATION: "0,x"}), old, podgroup("g"), pods("g", 3, devices=ask)
    )
    binds = [each for each in run(store, conf(GPUSharingEnable=True), now=2.0).decisions if isinstance(each, Bind)]
    assert [said(each) for each in binds] == [
        {words.GPU_INDEX_ANNOTATION: card, words.PREDICATE_TIME_ANNOTATION: "2000000000"} for card in ("2", "3")
    ]


def test_by_number_cards_are_taken_whole() -> None:
    ask = DeviceAsk((((words.GPU_NUMBER, 2),),))
    old = pod("old", on="n", devices=ask, annotations={words.GPU_INDEX_ANNOTATION: "1"})
    store = cluster(_sharing(4, 40), old, podgroup("g"), pods("g", 2, devices=ask))
    binds = [each for each in run(store, conf(GPUNumberEnable=True)).decisions if isinstance(each, Bind)]
    assert [said(each)[words.GPU_INDEX_ANNOTATION] for each in binds] == ["0,2"]


def test_a_node_of_a_thousand_million_cards_has_none() -> None:
    store = cluster(_sharing(10**9, 10**9), podgroup("g"), pods("g", 1, devices=DeviceAsk((((words.GPU_MEMORY, 1),),))))
    ran = run(store, conf(GPUSharingEnable=True))
    assert "found 1000000000 cards, wanted 1 to 32" in why(ran, "g-0")


# -- NPUs


def _npus(register: str) -> Node:
    has = resource(8, "32Gi", pods=110, **{"huawei.com/Ascend310P": 2})
    return replace(node("n", annotations={"hami.io/node-register-Ascend310P": register}), allocatable=has, capacity=has)


NPU = '{{"id":"dev-{0}","count":7,"devmem":21527,"devcore":8}}'


def test_npus_are_shared_by_templates() -> None:
    ask = DeviceAsk(((("huawei.com/Ascend310P", 1), ("huawei.com/Ascend310P-memory", 4000)),))
    store = cluster(_npus(f"[{NPU.format(0)},{NPU.format(1)}]"), podgroup("g"), pods("g", 1, devices=ask))
    (bind,) = run(store, conf(AscendHAMiVNPUEnable=True), now=5.0).decisions
    assert isinstance(bind, Bind)
    found = said(bind)
    assert found["hami.io/Ascend310P-devices-to-allocate"] == "dev-0,Ascend310P,6144,0:"
    assert found["huawei.com/Ascend310P"] == '[{"UUID":"dev-0","temp":"vir02"}]'
    assert found["hami.io/vgpu-node"] == "n"


@pytest.mark.parametrize("register", ["", "{}", "[]", "[1]", "[" * 4000, '[{"id":"a","count":-1}]', "x" * 200_000])
def test_npus_that_cannot_be_read_are_none(register: str) -> None:
    ask = DeviceAsk(((("huawei.com/Ascend310P", 1),),))
    ran = run(cluster(_npus(register), podgroup("g"), pods("g", 1, devices=ask)), conf(AscendHAMiVNPUEnable=True))
    assert "annotation hami.io/node-register-Ascend310P: " in why(ran, "g-0")


# -- who keeps apart


def test_pods_of_a_group_that_spreads_share_no_card() -> None:
    spread = {words.SPREAD_ANNOTATION: words.SPREAD}
    store = cluster(shared_gpus("n", 2), podgroup("g"), pods("g", 3, devices=vgpu(1), annotations=spread))
    assert sorted(given[:3] for given in cards_of(run(store, conf())).values()) == ["n-0", "n-1"]


def test_pods_that_match_one_rule_share_no_card() -> None:
    rules = [{"app": "training"}]
    training = [pod(f"t{i}", "g", labels={"app": "training"}, devices=vgpu(1)) for i in range(2)]
    other = pod("u", "g", labels={"app": "x"}, devices=vgpu(1))
    store = cluster(shared_gpus("n"), podgroup("g"), [*training, other])
    assert set(cards_of(run(store, conf(VGPUEnable=True, GPUExclusiveRules=rules)))) == {"t0", "u"}


# -- what nodes get wrong


@pytest.mark.parametrize(
    "register",
    [
        pytest.param("", id="nothing"),
        pytest.param("n-0,10,16384,NVIDIA,true:", id="a field too few"),
        pytest.param("n-0,ten,16384,NVIDIA,true,hami-core:", id="no number"),
        pytest.param("n-0,10,-1,NVIDIA,true,hami-core:", id="a negative one"),
        pytest.param("n-0,10,99999999999999999999,NVIDIA,true,hami-core:", id="a number without end"),
        pytest.param("n-0,1,1,NVIDIA,true,hami-core:" * 2, id="one card twice"),
        pytest.param("".join(f"{i},1,1,NVIDIA,true,hami-core:" for i in range(33)), id="more cards than a machine has"),
    ],
)
def test_a_node_whose_cards_cannot_be_read_has_none_and_says_why(register: str) -> None:
    wrong = replace(shared_gpus("wrong"), annotations={words.REGISTER_ANNOTATION: register})
    store = cluster([wrong, shared_gpus("right")], podgroup("g"), pods("g", 2, devices=vgpu(9000)))
    ran = run(store, conf())
    assert ran.binds == {"ns/g-0": "right"}
    assert f"node not initialized with device hamivgpu: annotation {words.REGISTER_ANNOTATION}: found" in why(
        ran, "g-1"
    )


def test_a_node_without_cards_takes_nobody_who_asks_for_some_and_everybody_else() -> None:
    store = cluster(node("n"), podgroup("g"), [pod("a", "g", devices=vgpu(1)), pod("b", "g")])
    assert run(store, conf()).binds == {"ns/b": "n"}


# -- from cycle to cycle


def test_cards_given_in_the_last_cycle_are_taken_until_it_is_known_what_came_of_it() -> None:
    store = cluster(shared_gpus("n"), podgroup("g"), pods("g", 2, devices=vgpu(9000)))
    (first,) = run(store, conf()).decisions
    assert isinstance(first, Bind)
    store.assume([first])
    assert not run(store, conf()).binds
    store.apply(Undone(first.pod, first.uid))
    assert set(run(store, conf()).binds) == {first.pod}
    store.assume([first])
    bound = pod("g-0", "g", on="n", devices=vgpu(9000), annotations=said(first))
    store.apply(Seen(bound))
    assert not len(store.snapshot().tables.device_grants), "it says itself what it has"
    assert not run(store, conf()).binds
    store.apply(Gone(Pod, first.pod))
    assert set(run(store, conf()).binds) == {"ns/g-1"}


def test_nobody_is_bound_to_a_card_that_somebody_is_about_to_leave() -> None:
    there = has("old", "n", "n-0,NVIDIA,16384,0:", deletion=1.0)
    store = cluster(shared_gpus("n"), there, podgroup("g"), pods("g", 1, devices=vgpu(1000)))
    ran = run(store, conf())
    assert (ran.binds, ran.pipelined) == ({}, {"ns/g-0": "n"})


def test_a_placement_that_is_rolled_back_leaves_no_trace_on_cards() -> None:
    store = cluster(
        shared_gpus("n", 2), podgroup("g"), pods("g", 2, devices=vgpu(9000)), has("old", "n", "n-0,NVIDIA,50,5:")
    )
    ssn = session(store, conf())
    before, tasks = ssn.world.digest(), ssn.tables.tasks
    rows = [row for row in tasks.alive.nonzero()[0].tolist() if tasks.pods[row].name.startswith("g-")]
    old = next(row for row in tasks.alive.nonzero()[0].tolist() if tasks.pods[row].name == "old")
    with ssn.statement() as stmt:
        stmt.evict([old], "")
        assert stmt.allocate(rows[:1], [0]) is None
        assert stmt.pipeline(rows[1:], [0]) is None
        now, soon = (ssn.world.columns[f"deviceshare.{name}"].array[0] for name in ("now", "soon"))
        assert now[:, [NUM, MEMORY, CORES]].tolist() == [[1, 50, 5], [1, 9000, 0]]
        assert soon[:, [NUM, MEMORY, CORES]].tolist() == [[1, 9000, 0], [1, 9000, 0]]
    assert ssn.world.digest() == before


def test_without_pods_that_ask_nothing_is_kept_and_nobody_is_asked() -> None:
    ssn = session(cluster(shared_gpus("n"), podgroup("g"), pods("g", 1)), conf())
    assert not [name for name in ssn.world.columns if name.startswith("deviceshare.")]
    assert not [hook for hook in ssn.hooks.at(*policy(conf()).dialect.points.values()) if hook.plugin == "deviceshare"]


# -- against the slow and plain way


def test_whoever_waits_fits_no_node_and_no_card_is_overcommitted() -> None:
    for seed in range(12):
        dice = Random(seed)
        nodes = [shared_gpus(f"n{i}", dice.randint(1, 3)) for i in range(3)]
        asks = [vgpu(dice.choice((0, 3000, 9000)), dice.randint(1, 2), dice.choice((0, 30, 100))) for _ in range(14)]
        waiting = [pod(f"p{i}", "g", cpu="1m", memory=0, devices=ask) for i, ask in enumerate(asks)]
        policy_ = conf(VGPUEnable=True, SchedulePolicy=dice.choice(("", "binpack", "spread")), ScheduleWeight=1)
        given = cards_of(run(cluster(nodes, podgroup("g"), waiting), policy_))
        held: dict[str, list[tuple[int, int]]] = {f"{n.name}-{i}": [] for n in nodes for i in range(_count(n))}
        for text in given.values():
            for entry in text.split(":")[:-1]:
                card, _, memory, cores = entry.split(",")
                held[card].append((int(memory), int(cores)))
        for parts in held.values():
            assert sum(memory for memory, _ in parts) <= 16_384
            assert sum(cores for _, cores in parts) <= 100
            assert len(parts) == 1 or all(cores < 100 for _, cores in parts)
        for i, ask in enumerate(asks):
            if f"p{i}" not in given:
                assert not any(_fits(ask, [held[f"{n.name}-{c}"] for c in range(_count(n))]) for n in nodes), seed


def _count(has: Node) -> int:
    return has.annotations[words.REGISTER_ANNOTATION].count(":")


def _fits(ask: DeviceAsk, cards: list[list[tuple[int, int]]]) -> bool:
    named = dict(ask.containers[0])
    memory, cores = named.get(words.VGPU_MEMORY, 16_384), named.get(words.VGPU_CORES, 0)
    open_to = 0
    for parts in cards:
        left, used = 16_384 - sum(m for m, _ in parts), sum(c for _, c in parts)
        alone = cores < 100 or not parts
        open_to += left >= memory and used + cores <= 100 and alone and not (used == 100 and not cores)
    return open_to >= named[words.VGPU_NUMBER]


# -- policies and manifests


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"GPUSharingEnable": True, "GPUNumberEnable": True}, "found true beside deviceshare.GPUNumberEnable"),
        ({"GPUNumberEnable": True, "VGPUEnable": True}, "found true beside deviceshare.VGPUEnable"),
        ({"SchedulePolicy": "pack"}, "wanted binpack or spread"),
        ({"AscendMindClusterVNPUEnable": True}, "not in this version yet"),
        ({"GPUExclusiveRules": "a=b"}, "wanted a list of at most 64 mappings"),
        ({"GPUExclusiveRules": [{"a": 1}]}, "wanted texts for labels and values"),
        ({"DeviceConfig": {"nvidia": []}}, "nvidia: found list, wanted a mapping"),
        ({"DeviceConfig": {"vnpus": [{"commonWord": ""}]}}, "vnpus[0].commonWord: found '', wanted a text"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError) as error:
        policy(conf(**arguments))
    assert problem in str(error.value)


def test_a_manifest_says_what_containers_may_use_and_sums_leave_out_what_is_counted_by_card() -> None:
    limits = {"cpu": "1", words.VGPU_NUMBER: "2", words.VGPU_MEMORY: "3k", words.VGPU_CORES: "30"}
    annotations = {words.USE_ID_ANNOTATION: "a", "other": "b"}
    manifest = {
        "metadata": {"name": "p", "namespace": "ns", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}, {"name": "d"}]},
    }
    spec = Decoder().decode_as("v1", "Pod", manifest).spec
    asked = ((words.VGPU_CORES, 30), (words.VGPU_MEMORY, 3000), (words.VGPU_NUMBER, 2))
    assert spec.devices == DeviceAsk((asked, ()), (), ((words.USE_ID_ANNOTATION, "a"),))
    assert set(spec.request.scalars) == {words.VGPU_NUMBER, "pods"}
    manifest["spec"]["containers"][0]["resources"] = {}
    assert Decoder().decode_as("v1", "Pod", manifest).spec.devices is None


def test_pods_that_differ_in_their_wishes_alone_are_told_apart_by_one_reader() -> None:
    decoder = Decoder()

    def wishes(annotations: dict[str, str], resource: str = words.VGPU_NUMBER) -> tuple[tuple[str, str], ...] | None:
        resources = {"limits": {resource: "1"}, "requests": {resource: "1"}}
        metadata = {"name": "p", "namespace": "ns", "annotations": annotations}
        raw = {"metadata": metadata, "spec": {"containers": [{"name": "c", "resources": resources}]}}
        found = decoder.decode_as("v1", "Pod", raw)
        assert isinstance(found, Pod)
        return None if found.spec.devices is None else found.spec.devices.wishes

    assert wishes({}) == ()
    assert wishes({words.USE_ID_ANNOTATION: "a"}) == ((words.USE_ID_ANNOTATION, "a"),)
    assert wishes({words.USE_ID_ANNOTATION: "b"}) == ((words.USE_ID_ANNOTATION, "b"),)
    assert wishes({"hami.io/use-x-uuid": "a", "hami.io/vgpu-node": "n"}) == (("hami.io/use-x-uuid", "a"),)
    assert wishes({words.USE_ID_ANNOTATION: "a"}, "example.com/other") is None
