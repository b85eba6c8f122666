"""Why no domain of a topology takes a gang, where the sums of the domains do not tell: counted pod by pod."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.kai.label_trees import LabelTree, label_tree_of
from pumice.model.blockers import Domain, GangPartial
from pumice.reasons.places import Places
from pumice.reasons.view import View
from pumice.volcano.topology.rules import kept_bound


def in_labels(view: View, job: int, row: int) -> Domain | None:
    """Return what is in the way in the domain of node labels that takes most pods of a gang of KAI, or None if one
    takes all of them."""
    group = view.tables.jobs.groups[job]
    constraint = group.gang.topology if group.gang is not None else None
    tree = None
    if constraint is not None and constraint.required:
        tree = label_tree_of(view.tables, view.derived, constraint)
    if constraint is None or tree is None or (level := tree.level(constraint.required)) < 0:
        return None
    narrower = _one_domain(tree)
    if narrower > level and not constraint.preferred:
        return Domain(label=tree.levels[level], narrower=tree.levels[narrower])
    codes = tree.domains[level]
    names = tree.ids[level]
    found = _of_domains(view, job, row, [(codes == code).nonzero()[0] for code in range(len(names))])
    if found is None:
        return None
    domain, partial = found
    node = int((codes == domain).argmax())
    columns = [(label, view.derived.label(label)) for label in tree.levels[: level + 1]]
    labels = tuple(f"{label}={column.values[column.codes[node]]}" for label, column in columns)
    return Domain(names[domain], label=tree.levels[level], first=partial, labels=labels)


def _one_domain(tree: LabelTree) -> int:
    """Return the narrowest level of which all nodes are in one domain, or -1."""
    # Source: KAI topology plugin, which starts its search there and looks at no wider level.
    inside = tree.domains[0] >= 0
    same = [len(set(codes[inside].tolist())) == 1 for codes in tree.domains]
    return (same + [False]).index(False) - 1


def in_hypernodes(view: View, job: int, row: int) -> Domain | None:
    """Return what is in the way in the HyperNode that takes most pods of a gang, of those that its tier allows, or None
    if one takes all of them."""
    tree, bound = view.tables.tree, kept_bound(view.outcome.policy, view.tables, job)
    if bound is None or bound >= int(tree.tier[-1]):
        return None
    pinned = int(view.tables.jobs.hypernode[job])
    rows = [each for each in range(len(tree) - 1) if tree.tier[each] <= bound and pinned in (-1, tree.top, each)]
    found = _of_domains(view, job, row, [tree.nodes[each] for each in rows])
    if found is None:
        return None
    return Domain(tree.names[rows[found[0]]], bound, first=found[1])


def _of_domains(view: View, job: int, row: int, domains: Sequence[AnyArray]) -> tuple[int, GangPartial] | None:
    """Return the domain that takes most pods, with what is in the way of one more; None if one takes all. ``domains``:
    the nodes of each."""
    places = Places(view, job, row)
    counts = places.counts()
    tasks, mine = view.tables.tasks, view.others(job)
    there = tasks.view_node[mine[tasks.job[mine] == job]]
    # A gang of which pods run stays in their domain.
    usable = [i for i, nodes in enumerate(domains) if len(nodes) and (not len(there) or np.isin(there, nodes).all())]
    sums = {i: min(int(counts[domains[i]].sum()), places.needed) for i in usable}
    most = max(sums.values(), default=places.needed)
    if most >= places.needed:
        return None
    within = np.zeros(len(view.facts), dtype=bool)
    best = [i for i in usable if sums[i] == most]
    for i in best:
        within[domains[i]] = True
    node = places.nearest(counts, within)
    domain = next((i for i in best if node in domains[i]), best[0])
    return domain, GangPartial(most, places.needed, places.next_to(counts, node))
