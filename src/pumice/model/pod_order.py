"""Order of two pods if no plugin orders them. Source: Volcano CompareTask."""

from __future__ import annotations

from pumice.model.pod import Pod


def name_index(name: str) -> int | None:
    """Return the number at the end of a pod's name, if the name has at least three parts separated by ``-``, else
    None."""
    # ``job-task-7`` has an index, ``web-7`` has none, as in Volcano, which counts the parts.
    before, _, last = name.rpartition("-")
    if "-" not in before:
        return None
    try:
        return int(last)
    except ValueError:
        return None


def compare_pods(left: Pod, right: Pod) -> int:
    """Compare: smaller index first if both names have one, else older first, else smaller UID."""
    a, b = name_index(left.name), name_index(right.name)
    if a is not None and b is not None and a != b:
        return -1 if a < b else 1
    if left.creation != right.creation:
        return -1 if left.creation < right.creation else 1
    # UIDs are unique, so the order is total and does not depend on the order of rows.
    return (left.uid > right.uid) - (left.uid < right.uid)
