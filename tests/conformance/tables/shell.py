"""Checks of function tables about what is around a cycle: flags, arguments of actions, which nodes are followed."""

from __future__ import annotations

from pumice.cli.run_flags import labels_of
from pumice.kube.informers.scheduler_objects import has_one_of
from pumice.model.node import Node
from pumice.model.pod import without_queue_gate
from pumice.volcano.eviction.gangs.evict import limits_of
from tests.conformance.tables.objects import decoded
from tests.conformance.tables.table import Row, disagreement, table


@table("actions-gangpreempt/TestParseArguments_InvalidMaxDomainsFallsBackToDefault.yaml")
@table("actions-gangreclaim/TestParseArguments_InvalidMaxDomainsFallsBackToDefault.yaml")
def domains_by_default(row: Row) -> str | None:
    """The row says what is given; that it falls back to 8 is in the name of the test and in the specification."""
    return disagreement(limits_of(row.get("value", 0), whole=True, only_in_need=False).domains, row.get("expected", 8))


@table(
    "cache/TestSchedulerCache_SyncNode.yaml",
    unread={"Node": "the object that was given", "State": "a node that is followed is ready here"},
)
def which_nodes_are_followed(row: Row) -> str | None:
    """The expected nodes are those of this one name; Volcano calls it an error where there is none of it."""
    nodes = [each for each in decoded(Node=row.get("nodes", ())) if isinstance(each, Node)]
    is_missing = row["nodeName"] not in {each.name for each in nodes}
    if is_missing != row.get("wantErr", False):
        return f"missing: found {is_missing}, wanted {row.get('wantErr', False)}"
    labels = labels_of(row.get("nodeSelector", ()))
    found = {each.name for each in nodes if each.name == row["nodeName"] and has_one_of(each, labels)}
    return disagreement({name: {"Name": name} for name in found}, row["expectedNodes"])


@table("cache/TestRemoveVolcanoSchGate.yaml")
def gates_that_stay(row: Row) -> str | None:
    """What is written, and how an API server takes it, is in tests/unit/kube and tests/unit/apiserver."""
    names = tuple(gate["name"] for gate in row.get("initialGates") or ())
    return disagreement(without_queue_gate(names), tuple(gate["name"] for gate in row.get("want") or ()))
