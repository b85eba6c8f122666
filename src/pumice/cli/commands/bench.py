"""``pumice bench``: one cycle on a workload made by formula, measured."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.console import Table
from pumice.cli.errors import InputError
from pumice.cli.output import console, print_json

if TYPE_CHECKING:
    from pumice.runtime.measure import Figures

DIVERSE = ("equal", "unique", "anti", "affinity", "spread", "preferred", "hopeless")
#: The action that evicts in each.
EVICTING = {"preempt": "preempt", "reclaim": "reclaim", "gangreclaim": "gangreclaim", "starving": "preempt"}
VOLCANO = ("gang", "topo", *DIVERSE, *EVICTING, "tree")
KAI = (
    *("kai-alloc", "kai-reclaim", "kai-reclaimbig", "kai-consolidate", "kai-unschedulable"),
    *("kai-preempt", "kai-topology", "kai-full", "kai-claims", "kai-numa", "kai-native"),
)
#: Fields in which a tenant's gangs may differ, each with an empty cluster and a full one.
UNLIKE = (
    *("requests", "one-too-large", "all-too-large", "selectors", "node-affinity", "anti-affinity", "spread"),
    *("tolerations", "ports", "queues", "elastic", "no-pods", "within", "mixed"),
)
#: What a tenant may create to stop the scheduler, for either language.
HOSTILE = (
    *("hostile-topology", "hostile-victims", "hostile-claims", "hostile-lists", "hostile-cel", "hostile-patterns"),
    *(f"hostile-{kind}{cluster}" for kind in UNLIKE for cluster in ("", "-full")),
)
KAI_HOSTILE = tuple(f"kai-{name}" for name in (*HOSTILE, "hostile-tries", "hostile-groups"))
SCENARIOS = (*VOLCANO, *KAI, *HOSTILE, *KAI_HOSTILE)
CONFS = ("default", "binpack")
#: What consolidation may move: everything.
_NO_LIMIT = "configurations:\n- name: consolidation\n  arguments: {maxConsolidationPreemptees: -1}\n"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@click.command()
@click.option(
    "--scenario",
    type=click.Choice(SCENARIOS),
    required=True,
    metavar="NAME",
    help="What waits. gang: equal pods anywhere. topo: gangs that must stay within a HyperNode. equal: gangs that are "
    "admitted already. unique, hopeless: the same, whose pods ask for different things, which fit or do not. anti, "
    "affinity, spread, preferred: gangs with terms about other pods. preempt, reclaim: gangs that come before those "
    "that fill the cluster, in their own queue or in another; gangreclaim: in another, each within a HyperNode; "
    "starving: gangs that come after them. tree: a tree of queues under capacity. kai-NAME: such questions in KAI's "
    "language, and consolidation, claims of devices, NUMA zones and PodGroups of Kubernetes. hostile-NAME and "
    "kai-hostile-NAME: what a tenant may create to stop the scheduler, on an empty or (-full) a full cluster. A wrong "
    "NAME lists all.",
)
@click.option("--nodes", type=int, required=True, metavar="N")
@click.option("--pods", type=int, required=True, metavar="P", help="Pods that wait, in gangs.")
@click.option("--gang", type=int, required=True, metavar="G", help="Pods of one gang.")
@click.option("--queues", type=int, default=1, metavar="Q", show_default=True)
@click.option(
    "--tier",
    type=int,
    default=0,
    metavar="T",
    help="topo: the tier to stay within; 0 takes 1, 2 and 3 in turn. gangreclaim: 0 takes 2.  [default: 0]",
)
@click.option(
    "--conf",
    type=click.Choice(CONFS),
    default="default",
    show_default=True,
    help="Volcano's default policy, or with binpack; for topo with network-topology-aware.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
def bench(scenario: str, nodes: int, pods: int, gang: int, queues: int, tier: int, conf: str, as_json: bool) -> None:
    """Measure one cycle: taking the snapshot, and deciding.

    Generating the workload is not measured. Peak memory is that of the whole process. Afterwards all bound pods run,
    evicted pods are deleted and statuses are written, and more cycles are measured: the next one (next_cycle_ms), and
    cycles without changes (second_cycle_ms, the median). For figures to publish, run it several times and take the
    best and the median, as make bench does.

    \b
    Examples:
      pumice bench --scenario gang --nodes 1000 --pods 10000 --gang 10
      pumice bench --scenario topo --nodes 1000 --pods 4000 --gang 20 --tier 1 --json
      pumice bench --scenario unique --nodes 1000 --pods 5000 --gang 10
      pumice bench --scenario preempt --nodes 1000 --pods 500 --gang 10
    """
    for name in _THREADS:  # before NumPy is imported: a cycle is one thread
        os.environ.setdefault(name, "1")
    try:
        if scenario in HOSTILE or scenario in KAI_HOSTILE:
            figures = _of_tenant(scenario, nodes, pods)
        elif scenario in KAI:
            figures = _of_kai(scenario, nodes, pods, gang)
        else:
            figures = _of_volcano(scenario, nodes, pods, gang, queues, tier, conf)
    except ValueError as error:
        raise InputError(str(error)) from None
    result = {"scenario": scenario, "nodes": nodes, "pods": pods, **figures.to_json()}
    result |= {"gang": gang, "queues": queues, "tier": tier, "conf": conf}
    if as_json:
        print_json(result)
    else:
        _print(result)


def _of_volcano(scenario: str, nodes: int, pods: int, gang: int, queues: int, tier: int, conf: str) -> Figures:
    """Return a scenario of Volcano's language. Raises: ValueError for sizes that make no workload."""
    from pumice.runtime.measure import measure_cycle
    from pumice.runtime.policy.conf import policy_of
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.workloads.volcano import build
    from pumice.volcano.table import DEFAULT_CONF

    workload = build(scenario, nodes, pods, gang, queues, tier)
    in_hypernodes = scenario in ("topo", "gangreclaim")
    more = (["binpack"] if conf == "binpack" else []) + (["network-topology-aware"] if in_hypernodes else [])
    text = DEFAULT_CONF + "".join(f"  - name: {plugin}\n" for plugin in more)
    if scenario in EVICTING:
        text = text.replace("allocate,", f"allocate, {EVICTING[scenario]},", 1)
    if scenario == "tree":
        text = text.replace("name: proportion", "name: capacity\n    enableHierarchy: true")
    return measure_cycle(workload.objects(), policy_of(text, builtin_registry()))


def _of_kai(scenario: str, nodes: int, pods: int, gang: int) -> Figures:
    """Return a scenario under KAI's default policy, with no limit on what consolidation may move. Raises: ValueError
    for sizes that make no workload."""
    from pumice.kai.table import DEFAULT_CONF
    from pumice.runtime.measure import measure_cycle
    from pumice.runtime.policy.conf import policy_of
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.workloads.kai import SCHEDULER, build_kai

    workload = build_kai(scenario, nodes, pods, gang)
    # Not in KAI's default policy.
    text = DEFAULT_CONF + ("  - name: numa\n" if scenario == "kai-numa" else "") + _NO_LIMIT
    return measure_cycle(workload.objects(), policy_of(text, builtin_registry()), (SCHEDULER,))


def _of_tenant(scenario: str, nodes: int, pods: int) -> Figures:
    """Return a hostile scenario under the default policy of its language, with all actions that evict. Raises:
    ValueError for sizes that make no workload."""
    from pumice.kai import table as kai
    from pumice.runtime.measure import measure_cycle
    from pumice.runtime.policy.conf import policy_of
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.workloads.hostile import SCHEDULERS, build_hostile
    from pumice.volcano import table as volcano

    language, text = "volcano", volcano.DEFAULT_CONF + "  - name: network-topology-aware\n"
    text = text.replace("allocate,", f"allocate, {', '.join(dict.fromkeys(EVICTING.values()))}, gangpreempt,", 1)
    if scenario in KAI_HOSTILE:
        language, text = "kai", kai.DEFAULT_CONF
    objects = build_hostile(scenario.removeprefix("kai-"), language, nodes, pods)
    return measure_cycle(objects, policy_of(text, builtin_registry()), (SCHEDULERS[language],))


def _print(result: dict[str, Any]) -> None:
    out, table = console(), Table("", "")
    table.add("bound", f"{result['bound']:,} of {result['pods']:,} pods")
    if result["evicted"] or result["pipelined"] or result["scenario"] in KAI:
        table.add("evicted", f"{result['evicted']:,} pods")
        table.add("pipelined", f"{result['pipelined']:,} pods")
        table.add("moved", f"{result['moved']:,} pods")
    table.add("wall", f"{result['wall_s']:.3f} s")
    table.add("CPU", f"{result['cpu_s']:.3f} s")
    for phase, seconds in result["phases"].items():
        table.add(f"  {phase}", f"{1000 * seconds:.1f} ms")
    table.add("the next cycle", f"{result['next_cycle_ms']:.2f} ms")
    table.add("a cycle without changes", f"{result['second_cycle_ms']:.2f} ms")
    table.add("peak memory", f"{result['peak_rss_mb']:.0f} MB")
    table.add("digest", result["digest"])
    out.print_table(table)
