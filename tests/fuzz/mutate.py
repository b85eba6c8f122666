"""Changes that respect structure: of trees as JSON has them, and of the text that they become."""

from __future__ import annotations

import copy
import json
import re
from random import Random
from typing import Any

#: In a text, what is between these is written as it is: what no JSON writer would write.
RAW_OPEN, RAW_CLOSE = "\u2983", "\u2984"
_RAW = re.compile(f'"{RAW_OPEN}(.*?){RAW_CLOSE}"')
_NESTED = re.compile(r"nested:(\d+)")

NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2, 3, 7, 100, 65_535, 65_536, 10**6, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, 2**64),
    *(0.5, -0.5, 1e-9, 1e15, 1e308, -1e308),
)
WORDS = (
    *(
        "",
        " ",
        "a",
        "b",
        "x",
        "A",
        "a b",
        "a/b",
        "/",
        "..",
        "-",
        "_",
        "0",
        "1",
        "-1",
        "1.5",
        "true",
        "null",
        "~",
        "é",
        "😀",
    ),
    *("a\nb", "a\tb", "\x00", "\x1b[31mred", "\x7f", "\x9b31m", "\u202e", "\u2028", "x" * 64, "x" * 254, "x" * 5_000),
    *(
        "1e3",
        "1E",
        "1e99",
        "9" * 30,
        "9" * 400,
        "1Ei",
        "8Ei",
        "1n",
        "1u",
        "100m",
        "0.1",
        ".5",
        "5.",
        "+1",
        "--1",
        "1Gi",
    ),
    *("9223372036854775807", "9223372036854775807m", "0x10", "1_000", "١", "Infinity", "NaN", "50%", "110%", "∞%"),
    *(
        "2026-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "2026-02-30T00:00:00Z",
        "now",
        "1h",
        "-1h",
    ),
    *(
        "9999999h",
        "In",
        "NotIn",
        "Exists",
        "DoesNotExist",
        "Gt",
        "Lt",
        "Perhaps",
        "Always",
        "Never",
        "NoSchedule",
        "NoExecute",
    ),
    *(
        "hard",
        "soft",
        "Node",
        "HyperNode",
        "Open",
        "Closed",
        "Running",
        "Pending",
        "Succeeded",
        "Failed",
        "Unknown",
        "Inqueue",
    ),
    *(
        "volcano",
        "default",
        "root",
        "default-scheduler",
        "kubernetes.io/hostname",
        "cpu",
        "memory",
        "pods",
        "nvidia.com/gpu",
    ),
    *(
        "requests.cpu",
        "count/pods",
        "hugepages-2Mi",
        "(a+)+$",
        "[",
        "^node-",
        ".*",
        "(?P<a>b)",
        "\\",
        "team-a",
        "n0",
        "g",
        "q0",
    ),
)
CONTAINERS: tuple[Any, ...] = ([], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"a": {"b": []}}, [1, "a", {}])
RAW = (
    *(
        "!!bool foo",
        "!!int foo",
        "!!float .",
        "!!timestamp foo",
        "!!binary é",
        "!!set {a}",
        "!!python/name:os.system",
        "!x y",
    ),
    *(
        "0x" + "f" * 4000,
        "9" * 4400,
        "1e999",
        ".inf",
        ".nan",
        "-.inf",
        "0o17",
        "1:30",
        "2001-01-01",
        "&a [*a]",
        "*b",
        "<<: 5",
    ),
    *(
        '"\\ud800"',
        '"\\uDfff x"',
        '"\\u0000"',
        "nested:40",
        "nested:400",
        "nested:3000",
        "'",
        "[",
        "{",
        "|",
        ">",
        "? a",
        "%",
        "@",
    ),
)
#: Keys that mean something somewhere.
KEYS = (
    *(
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "spec",
        "status",
        "uid",
        "resourceVersion",
        "ownerReferences",
    ),
    *(
        "finalizers",
        "generateName",
        "deletionTimestamp",
        "creationTimestamp",
        "managedFields",
        "generation",
        "kind",
        "apiVersion",
    ),
    *(
        "containers",
        "initContainers",
        "resources",
        "requests",
        "limits",
        "ports",
        "hostPort",
        "protocol",
        "image",
        "overhead",
    ),
    *(
        "nodeName",
        "nodeSelector",
        "affinity",
        "tolerations",
        "taints",
        "unschedulable",
        "schedulingGates",
        "priority",
        "volumes",
    ),
    *(
        "topologySpreadConstraints",
        "restartPolicy",
        "hostNetwork",
        "schedulerName",
        "priorityClassName",
        "preemptionPolicy",
    ),
    *(
        "minMember",
        "minResources",
        "minTaskMember",
        "queue",
        "subGroupPolicy",
        "networkTopology",
        "weight",
        "capability",
        "state",
    ),
    *(
        "guarantee",
        "deserved",
        "parent",
        "reclaimable",
        "tasks",
        "replicas",
        "minAvailable",
        "template",
        "policies",
        "dependsOn",
    ),
    *(
        "tier",
        "members",
        "selector",
        "type",
        "exactMatch",
        "regexMatch",
        "labelMatch",
        "allocatable",
        "capacity",
        "conditions",
    ),
    *(
        "phase",
        "startTime",
        "containerStatuses",
        "initContainerStatuses",
        "value",
        "globalDefault",
        "hard",
        "used",
        "key",
        "operator",
        "values",
        "effect",
    ),
)


def hostile(dice: Random) -> Any:
    """A value that a client may send in the place of any other."""
    kind = dice.randrange(16)
    if kind < 5:
        return dice.choice(NUMBERS)
    if kind < 11:
        return dice.choice(WORDS)
    if kind < 13:
        return copy.deepcopy(dice.choice(CONTAINERS))
    if kind == 13:
        return dice.choice((None, True, False))
    if kind == 14:
        return f"{RAW_OPEN}{dice.choice(RAW)}{RAW_CLOSE}"
    return {dice.choice(KEYS): hostile(dice)}


def mutated(dice: Random, tree: Any, count: int) -> Any:
    """A copy with so many changes."""
    tree = copy.deepcopy(tree)
    for _ in range(count):
        tree = _changed(dice, tree)
    return tree


def _changed(dice: Random, tree: Any) -> Any:
    spots = list(_spots(tree))
    if not spots:
        return hostile(dice)
    holder, key = dice.choice(spots)
    what = dice.randrange(20)
    if what < 9:
        holder[key] = hostile(dice)
    elif what < 11:
        del holder[key]
    elif what < 13:
        other, place = dice.choice(spots)
        holder[key] = copy.deepcopy(other[place])
    elif what < 15 and isinstance(holder, dict):
        holder[dice.choice(KEYS)] = hostile(dice)
    elif what < 16 and isinstance(holder, dict):
        holder[_misspelt(dice, key)] = holder.pop(key)
    elif what < 18 and isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key]) for _ in range(dice.choice((1, 2, 5, 40)))]
    elif what == 18 and isinstance(holder, dict):
        holder.update({f"{key}-{i}": copy.deepcopy(holder[key]) for i in range(dice.choice((3, 60, 300)))})
    elif isinstance(holder[key], dict | list):
        holder[key] = [holder[key]] if dice.random() < 0.5 else {"a": holder[key]}
    else:
        holder[key] = _like(dice, holder[key])
    return tree


def _spots(tree: Any, most: int = 4_000) -> list[tuple[Any, Any]]:
    """Every (container, key or index)."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting and len(found) < most:
        each = waiting.pop()
        if isinstance(each, dict):
            found += [(each, key) for key in each]
            waiting += each.values()
        elif isinstance(each, list):
            found += [(each, i) for i in range(len(each))]
            waiting += each
    return found


def _misspelt(dice: Random, word: str) -> str:
    place = dice.randrange(len(word) + 1)
    return word[:place] + dice.choice(("", "x", "X", "-", "é")) + word[place + 1 :]


def _like(dice: Random, value: Any) -> Any:
    """Something near it."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return dice.choice((value + 1, value - 1, -value, value * 1000, str(value)))
    return dice.choice((value * 2, value[:-1], f" {value}", value.upper(), value[::-1], value + "\n"))


# -- text


def written(tree: Any) -> str:
    """The tree as JSON, with what is marked as raw written so."""
    text = json.dumps(tree, ensure_ascii=False)
    return _RAW.sub(lambda match: _raw(match[1]), text)


def _raw(text: str) -> str:
    text = json.loads(f'"{text}"', strict=False)
    nested = _NESTED.fullmatch(text)
    if nested:
        depth = int(nested[1])
        return '{"a":' * depth + "1" + "}" * depth
    return text


def smudged(dice: Random, text: str, count: int) -> str:
    """The text with so many pieces of it moved, cut, doubled or replaced."""
    for _ in range(count):
        start = dice.randrange(len(text) + 1)
        end = min(start + dice.choice((0, 1, 1, 2, 8, 80)), len(text))
        piece = dice.choice(("", text[start:end] * 2, dice.choice(RAW), dice.choice(WORDS), dice.choice(_MARKS)))
        text = text[:start] + piece + text[end:]
    return text


_MARKS = (
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\n---\n",
    "\n...\n",
    "\x00",
    ",",
    ":",
    ";",
    "#",
    '"',
    "'",
    "[",
    "]",
    "{",
    "}",
    "\ufeff",
    "%TAG ! x:\n",
)
