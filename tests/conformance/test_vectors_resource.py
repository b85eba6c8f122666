"""Volcano's own answers for 3000 random triples of resources (``spec/volcano/vectors/README.md`` explains the keys)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pumice.model.resources import Resource
from tests import resource_algebra as algebra

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
VECTORS = SHARED / "spec" / "volcano" / "vectors" / "resource.jsonl.gz"
ROWS_EXPECTED = 3000

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not VECTORS.is_file(),
        reason=f"no recorded vectors at {VECTORS}: put `shared` beside the checkout or set PUMICE_SHARED",
    ),
]

Z, I = algebra.Missing.ZERO, algebra.Missing.INFINITY  # noqa: E741 - the suffixes of the keys
Operation = Callable[[Resource, Resource, Resource], Any]

#: key in a row -> what Pumice answers for its a, b and q
OPERATIONS: dict[str, Operation] = {
    "Add": lambda a, b, q: a.add(b),
    "SubW": lambda a, b, q: algebra.sub_unchecked(a, b),
    "SetMax": lambda a, b, q: a.set_max(b),
    "FitDelta": lambda a, b, q: algebra.fit_delta(a, b),
    "MinDimZ": lambda a, b, q: algebra.min_dimension(a, b, Z),
    "MinDimI": lambda a, b, q: algebra.min_dimension(a, b, I),
    "DiffZ": lambda a, b, q: algebra.diff(a, b, Z),
    "DiffI": lambda a, b, q: algebra.diff(a, b, I),
    "Exceeded": lambda a, b, q: algebra.exceeded_part(a, b),
    "IsEmpty": lambda a, b, q: a.is_empty(),
    "Names": lambda a, b, q: algebra.names(a),
    "EqualZ": lambda a, b, q: algebra.equal(a, b),
    "EqualI": lambda a, b, q: algebra.equal(a, b),
    "LessZ": lambda a, b, q: algebra.less(a, b, Z),
    "LessI": lambda a, b, q: algebra.less(a, b, I),
    "LessEqualZ": lambda a, b, q: algebra.less_equal(a, b, Z),
    "LessEqualI": lambda a, b, q: algebra.less_equal(a, b, I),
    "LENZ": lambda a, b, q: algebra.less_equal_names(a, b, Z),
    "LENI": lambda a, b, q: algebra.less_equal_names(a, b, I),
    "LessPartlyZ": lambda a, b, q: algebra.less_partly(a, b, Z),
    "LessPartlyI": lambda a, b, q: algebra.less_partly(a, b, I),
    "LessEqualPartlyZ": lambda a, b, q: algebra.less_equal_partly(a, b, Z),
    "LessEqualPartlyI": lambda a, b, q: algebra.less_equal_partly(a, b, I),
    "LEWD": algebra.less_equal_with_dimension,
    "LEPWD": algebra.less_equal_partly_with_dimension,
    "LEPWDZ": algebra.less_equal_partly_with_dimension_zero_filtered,
    "GPWD": algebra.greater_partly_with_dimension,
    "GPRD": algebra.greater_partly_with_relevant_dimensions,
}
INPUTS = {"a", "b", "q"}


@cache
def rows() -> list[dict[str, Any]]:
    with gzip.open(VECTORS, "rt") as lines:
        return [json.loads(line) for line in lines]


def resource(raw: Mapping[str, Any]) -> Resource:
    return Resource(raw["C"], raw["M"], raw["S"])


def as_recorded(answer: Any) -> Any:
    """An answer in the shape of the vectors; they list names sorted as text."""
    match answer:
        case Resource():
            scalars = None if answer.scalars is None else dict(answer.scalars)
            return {"C": answer.milli_cpu, "M": answer.memory, "S": scalars}
        case (Resource() as more, Resource() as less):
            return [as_recorded(more), as_recorded(less)]
        case (bool() as found, tuple() as names):
            return [found, sorted(names)]
        case tuple():
            return sorted(answer)
    return answer


def test_every_recorded_key_is_compared() -> None:
    assert len(rows()) == ROWS_EXPECTED
    assert set().union(*rows()) == OPERATIONS.keys() | INPUTS


@pytest.mark.parametrize("key", OPERATIONS)
def test_operation_agrees_with_volcano(key: str) -> None:
    operation = OPERATIONS[key]
    for number, row in enumerate(rows(), start=1):
        a, b, q = (resource(row[name]) for name in "abq")
        assert as_recorded(operation(a, b, q)) == row[key], f"line {number}: a={row['a']} b={row['b']} q={row['q']}"
