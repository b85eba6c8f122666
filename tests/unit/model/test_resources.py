"""Resources: construction, the three kinds of arithmetic, and what the comparisons make of missing scalars."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.model.quantity import INT64_MAX, QuantityError
from pumice.model.resources import (
    EMPTY,
    Resource,
    is_kept_scalar,
)
from tests import resource_algebra as algebra

GPU = "nvidia.com/gpu"
FPGA = "example.com/fpga"
Z, INF = algebra.Missing.ZERO, algebra.Missing.INFINITY


def gpu(amount: float) -> Resource:
    return Resource(scalars={GPU: amount})


amounts = st.sampled_from([0.0, 0.05, 0.1, 1.0, 1.05, 2.0, 1000.0])
scalar_maps = st.none() | st.dictionaries(st.sampled_from([GPU, FPGA, "pods"]), amounts)
resources = st.builds(Resource, amounts, amounts, scalar_maps)

# --------------------------------------------------------------------------------------------------------- value


def test_scalars_are_kept_in_order_and_cannot_be_changed() -> None:
    given_scalars = {"b": 2.0, "a": 1.0}
    resource = Resource(1.0, 2.0, given_scalars)
    given_scalars["c"] = 3.0
    assert resource.scalars is not None
    assert list(resource.scalars.items()) == [("a", 1.0), ("b", 2.0)]
    with pytest.raises(TypeError):
        resource.scalars["a"] = 5.0  # type: ignore[index]
    with pytest.raises(AttributeError, match="immutable"):
        resource.milli_cpu = 5.0  # type: ignore[misc]


@given(resources)
def test_equal_values_are_one_key_and_survive_copying(resource: Resource) -> None:
    again = Resource(resource.milli_cpu, resource.memory, resource.scalars, resource.max_task_num)
    assert again == resource
    assert hash(again) == hash(resource)
    assert pickle.loads(pickle.dumps(resource)) == resource
    assert copy.deepcopy(resource) == resource


def test_no_scalars_differs_from_scalars_never_named() -> None:
    assert Resource(scalars={}) != EMPTY
    assert algebra.equal(Resource(scalars={}), EMPTY)


# --------------------------------------------------------------------------------------- to and from Kubernetes


def test_from_list_takes_each_resource_in_its_own_unit() -> None:
    resource = Resource.from_list(
        {"cpu": "1500m", "memory": "1Gi", "pods": "110", "ephemeral-storage": "2", GPU: 4, "hugepages-2Mi": "1.5"}
    )
    scalars = {"ephemeral-storage": 2000.0, "hugepages-2Mi": 1500.0, GPU: 4000.0, "pods": 110.0}
    assert resource == Resource(1500.0, 2.0**30, scalars, 110)


def test_from_list_leaves_out_what_is_not_scheduled_by() -> None:
    quantities = {
        "count/pods": "1",
        "requests.nvidia.com/gpu": "1",
        "gpu": "1",
        "storage": "5Gi",
        "count/jobs.batch": "?",
    }
    assert Resource.from_list(quantities) == EMPTY
    assert Resource.from_list({GPU: "1", FPGA: "1"}, ignored={GPU}) == Resource(scalars={FPGA: 1000.0})
    assert Resource.from_list({}) == Resource.from_list(None) == EMPTY


def test_from_list_says_which_resource_is_wrong() -> None:
    with pytest.raises(QuantityError, match=r"^nvidia\.com/gpu: '1x' is not a quantity; accepted: "):
        Resource.from_list({"cpu": "1", GPU: "1x"})


@pytest.mark.parametrize(
    "name",
    [GPU, "hugepages-2Mi", "attachable-volumes-csi-ebs", "ephemeral-storage", "kubernetes.io/thing", "a.b/C_d.e-f"]
    + ["x/" + "y" * 63, ".".join(["d" * 60] * 4) + "/y", "node.kubernetes.io/x"],
)
def test_scalars_that_are_kept(name: str) -> None:
    assert is_kept_scalar(name)


@pytest.mark.parametrize(
    "name",
    ["", "gpu", "count/pods", "requests.nvidia.com/gpu", "/gpu", "nvidia.com/", "a/b/c", "Nvidia.com/gpu", "a..b/c"]
    + ["a.b/-c", "a.b/c-", "a_b/c", "x/" + "y" * 64, "d" * 250 + "/y", GPU + "\n", "limits.cpu"],
)
def test_scalars_that_are_not_kept(name: str) -> None:
    assert not is_kept_scalar(name)


def test_to_list_writes_canonical_texts() -> None:
    resource = Resource(2500.0, 12 * 2.0**30, {GPU: 8000.0, "pods": 3.0}, 3)
    assert resource.to_list() == {"cpu": "2500m", "memory": "12Gi", GPU: "8", "pods": "3"}
    assert EMPTY.to_list() == {"cpu": "0", "memory": "0"}


@given(st.builds(Resource, st.just(1500.0), st.integers(0, 2**50).map(float), st.just({GPU: 500.0, "pods": 3.0})))
def test_a_written_list_reads_back(resource: Resource) -> None:
    assert algebra.equal(Resource.from_list(resource.to_list()), resource)


def test_describe() -> None:
    assert algebra.describe(Resource(2000.0, 4096.0)) == "cpu 2000.00, memory 4096.00"
    limitless = Resource(algebra.MAX_FLOAT, algebra.MAX_FLOAT, {"b": float(INT64_MAX), "a": 0.125})
    assert algebra.describe(limitless) == "cpu maxFloat, memory maxFloat, a 0.12, b maxInt"


# ------------------------------------------------------------------------------------------------------- reading


def test_reading() -> None:
    resource = Resource(0.05, 3.0, {GPU: 2.0, FPGA: 0.0, "pods": 1.0})
    assert algebra.names(resource) == ("memory", GPU, "pods")
    assert [resource.get(name) for name in ("cpu", "memory", GPU, "absent")] == [0.05, 3.0, 2.0, 0.0]
    assert not resource.is_empty()
    assert Resource(0.09, 0.09, {GPU: 0.09, "pods": 5.0}).is_empty()


def test_is_zero() -> None:
    resource = Resource(0.05, 1.0, {GPU: 0.0, FPGA: 1.0})
    assert [algebra.is_zero(resource, name) for name in ("cpu", "memory", GPU, FPGA)] == [True, False, True, False]
    assert algebra.is_zero(EMPTY, "anything")
    with pytest.raises(AssertionError, match="unknown resource absent: there is cpu 0.05"):
        algebra.is_zero(resource, "absent")


def test_intersections() -> None:
    a, b = Resource(1.0, 0.0, {GPU: 2.0, "pods": 1.0}), Resource(1.0, 1.0, {GPU: 0.1, "pods": 1.0})
    assert algebra.intersection(a, b) == ("cpu", GPU, "pods")
    assert algebra.intersection_without_ignored(a, b) == ("cpu", GPU)


# ---------------------------------------------------------------------------------------------------- arithmetic


def test_add_names_scalars_only_where_there_are_some() -> None:
    assert EMPTY.add(Resource(1.0, 2.0, {})) == Resource(1.0, 2.0, None)
    assert EMPTY.add(gpu(2.0)).add(gpu(3.0)) == gpu(5.0)


def test_sub_takes_what_fits_and_nothing_else() -> None:
    assert algebra.sub(Resource(3.0, 3.0, {GPU: 2.0}), Resource(1.0, 1.0, {GPU: 2.0})) == Resource(2.0, 2.0, {GPU: 0.0})
    with pytest.raises(AssertionError, match=r"cannot take <cpu 1\.00, memory 0\.00> from <cpu 0\.50, memory 0\.00>"):
        algebra.sub(Resource(0.5), Resource(1.0))
    assert algebra.sub(Resource(0.95), Resource(1.0)).milli_cpu == pytest.approx(-0.05)


def test_sub_unchecked_may_go_below_zero_but_takes_no_scalar_from_none() -> None:
    assert algebra.sub_unchecked(Resource(scalars={}), gpu(2.0)) == gpu(-2.0)
    assert algebra.sub_unchecked(Resource(5.0), Resource(1.0, 1.0, {GPU: 2.0})) == Resource(4.0, -1.0)


@given(a=resources, b=resources)
def test_what_is_added_can_be_taken(a: Resource, b: Resource) -> None:
    assert algebra.equal(algebra.sub(a.add(b), b), a)


@given(a=resources, b=resources)
def test_no_operation_touches_the_task_limit(a: Resource, b: Resource) -> None:
    limited = replace(a, max_task_num=7)
    answers = [
        limited.add(b),
        algebra.sub_unchecked(limited, b),
        limited.multi(2.0),
        limited.set_max(b),
        algebra.fit_delta(limited, b),
    ]
    answers += [
        algebra.fit_delta(limited, b),
        algebra.min_dimension(limited, b, Z),
        algebra.with_scalar(limited, GPU, 1.0),
    ]
    assert {answer.max_task_num for answer in answers} == {7}


def test_multi_rounds_nothing() -> None:
    assert Resource(1.0, 3.0, {GPU: 5.0}).multi(0.5) == Resource(0.5, 1.5, {GPU: 2.5})
    assert EMPTY.multi(3.0) == EMPTY


def test_set_max() -> None:
    assert Resource(1.0, 5.0, {GPU: 1.0}).set_max(Resource(2.0, 3.0, {GPU: 0.0, FPGA: 0.0})) == Resource(
        2.0, 5.0, {GPU: 1.0, FPGA: 0.0}
    )
    assert EMPTY.set_max(None) is EMPTY
    assert EMPTY.set_max(Resource(scalars={})).scalars is None


def test_fit_delta_shows_what_is_insufficient() -> None:
    assert algebra.fit_delta(Resource(3.0, 1.0), Resource(2.0, 0.0, {GPU: 1.0, FPGA: 0.0})) == Resource(
        3.0 - 2.1, 1.0, {GPU: -1.1}
    )


@pytest.mark.parametrize(("missing", "kept"), [(Z, 0.0), (INF, 4.0)])
def test_min_dimension_bounds_own_scalars(missing: algebra.Missing, kept: float) -> None:
    mine = Resource(5.0, 5.0, {GPU: 4.0, FPGA: 4.0})
    assert algebra.min_dimension(mine, Resource(9.0, 1.0, {FPGA: 3.0, "pods": 1.0}), missing) == Resource(
        5.0, 1.0, {GPU: kept, FPGA: 3.0}
    )
    assert algebra.min_dimension(Resource(5.0), gpu(1.0), missing) == EMPTY


def test_diff_marks_the_unlimited() -> None:
    assert algebra.diff(gpu(3.0), Resource(1.0), Z) == (gpu(3.0), Resource(1.0, 0.0, {}))
    assert algebra.diff(gpu(3.0), Resource(1.0), INF) == (Resource(scalars={}), Resource(1.0, 0.0, {GPU: -1.0}))
    assert algebra.diff(Resource(1.0), gpu(3.0), INF) == (Resource(1.0, 0.0, {GPU: -1.0}), Resource(scalars={}))
    assert algebra.diff(gpu(3.0), gpu(3.0), Z) == (Resource(scalars={}), gpu(0.0))


@given(a=resources, b=resources)
def test_a_difference_added_back_is_the_whole(a: Resource, b: Resource) -> None:
    more, less = algebra.diff(a, b, Z)
    assert algebra.equal(algebra.sub_unchecked(b.add(more), less), a)


def test_exceeded_part() -> None:
    assert algebra.exceeded_part(Resource(3.0, 1.0), Resource(1.0, 2.0)) == Resource(2.0, 0.0, {})
    assert algebra.exceeded_part(gpu(1.0), None) == gpu(1.0)
    assert algebra.exceeded_part(None, gpu(1.0)) == algebra.exceeded_part(None, None) == EMPTY


def test_min_of_and_max_of() -> None:
    a, b = Resource(1.0, 5.0, {GPU: 2.0, "x": -1.0}), Resource(3.0, 4.0, {FPGA: 3.0, "y": 0.0})
    assert algebra.min_of(a, b) == Resource(1.0, 4.0, {GPU: 0.0, "x": -1.0})
    assert algebra.min_of(a, EMPTY).scalars is algebra.min_of(EMPTY, a).scalars is None
    assert algebra.max_of(a, b) == Resource(3.0, 5.0, {GPU: 2.0, FPGA: 3.0})
    assert algebra.max_of(a, EMPTY) == Resource(1.0, 5.0, {GPU: 2.0})
    assert algebra.max_of(EMPTY, EMPTY).scalars is None


@pytest.mark.parametrize(
    ("part", "whole", "answer"), [(1, 4, 0.25), (0, 4, 0.0), (0, 0, 0.0), (2, 0, 1.0), (8, 4, 2.0)]
)
def test_share(part: float, whole: float, answer: float) -> None:
    assert algebra.share(part, whole) == answer


# ---------------------------------------------------------------------------------------------------- comparison

#: a, b, mode -> less, less_equal, less_partly, less_equal_partly, names of less_equal_names
COMPARED = [
    (EMPTY, EMPTY, Z, False, True, False, True, ()),
    (EMPTY, Resource(1.0, 1.0), Z, True, True, True, True, ()),
    (Resource(1.05, 1.0), Resource(1.0, 2.0), Z, False, True, True, True, ()),
    (Resource(1.2, 1.0), Resource(1.0, 2.0), Z, False, False, True, True, ("cpu",)),
    (Resource(2.0, 2.0), Resource(1.0, 1.0), Z, False, False, False, False, ("cpu", "memory")),
    (gpu(1.0), Resource(1.0, 1.0), Z, False, False, True, True, (GPU,)),
    (gpu(1.0), Resource(1.0, 1.0), INF, True, True, True, True, ()),
    (Resource(2.0, 2.0), gpu(1.0), Z, False, False, True, True, ("cpu", "memory")),
    (EMPTY, gpu(1.0), INF, False, False, False, True, ()),
    (Resource(2.0, 2.0, {GPU: 1.0}), EMPTY, INF, False, False, True, True, ("cpu", "memory")),
    (Resource(2.0, 2.0, {GPU: 1.0}), gpu(1.0), INF, False, False, False, True, ("cpu", "memory")),
]


@pytest.mark.parametrize(
    ("a", "b", "missing", "less", "less_equal", "less_partly", "less_equal_partly", "names"), COMPARED
)
def test_comparison(
    a: Resource,
    b: Resource,
    missing: algebra.Missing,
    less: bool,
    less_equal: bool,
    less_partly: bool,
    less_equal_partly: bool,
    names: tuple[str, ...],
) -> None:
    assert algebra.less(a, b, missing) is less
    assert algebra.less_equal(a, b, missing) is less_equal
    assert algebra.less_partly(a, b, missing) is less_partly
    assert algebra.less_equal_partly(a, b, missing) is less_equal_partly
    assert algebra.less_equal_names(a, b, missing) == (not names, names)
    assert algebra.greater_partly(a, b, missing) == (bool(names), names)


def test_equal_looks_at_own_dimensions() -> None:
    assert algebra.equal(EMPTY, gpu(5.0))
    assert not algebra.equal(gpu(5.0), EMPTY)
    assert algebra.equal(Resource(1.0, 1.0, {GPU: 0.09}), Resource(1.09, 0.91))


#: a, b, request -> what LessEqualWithDimension, GreaterPartlyWithDimension and ...RelevantDimensions name
REQUESTED = [
    (gpu(2.0), EMPTY, gpu(1.0), (GPU,), (GPU,), ()),
    (Resource(4.0), EMPTY, Resource(2.0), ("cpu",), ("cpu",), ()),
    (gpu(2.0), gpu(0.0), gpu(1.0), (GPU,), (GPU,), (GPU,)),
    (Resource(4.0, 4.0), Resource(1.0, 1.0), Resource(0.0, 2.0), ("memory",), ("memory",), ("memory",)),
    (Resource(1.05), Resource(1.0), Resource(1.0), ("cpu",), ("cpu",), ("cpu",)),
    (Resource(scalars={"pods": 2.0}), Resource(scalars={"pods": 1.0}), Resource(scalars={"pods": 1.0}), (), (), ()),
    (EMPTY, gpu(-1.0), gpu(1.0), (), (GPU,), (GPU,)),
]


@pytest.mark.parametrize(("a", "b", "request_", "over", "greater", "relevant"), REQUESTED)
def test_comparison_in_what_is_requested(
    a: Resource,
    b: Resource,
    request_: Resource,
    over: tuple[str, ...],
    greater: tuple[str, ...],
    relevant: tuple[str, ...],
) -> None:
    assert algebra.less_equal_with_dimension(a, b, request_) == (not over, over)
    assert algebra.greater_partly_with_dimension(a, b, request_) == (bool(greater), greater)
    assert algebra.greater_partly_with_relevant_dimensions(a, b, request_) == (bool(relevant), relevant)


def test_comparison_without_a_request_or_another() -> None:
    a, b = Resource(4.0, 1.0, {GPU: 1.0}), Resource(1.0, 2.0)
    assert algebra.less_equal_with_dimension(a, None, a) == (False, ("cpu", "memory", GPU))
    assert algebra.less_equal_with_dimension(a, b, None) == (False, ("cpu", GPU))
    assert algebra.less_equal_partly_with_dimension(a, b, None) == (False, ())
    assert algebra.less_equal_partly_with_dimension_zero_filtered(a, b, None) == (False, ())
    assert algebra.greater_partly_with_dimension(a, b, None) == (False, ())
    assert algebra.greater_partly_with_dimension(a, None, gpu(1.0)) == (True, (GPU,))
    assert algebra.greater_partly_with_relevant_dimensions(a, b, None) == (False, ())
    assert algebra.greater_partly_with_relevant_dimensions(a, None, gpu(1.0)) == (False, ())


def test_partly_within_a_request() -> None:
    a, b, request = Resource(1.0), Resource(2.0), Resource(1.0, 1.0, {GPU: 1.0, "pods": 1.0})
    assert algebra.less_equal_partly_with_dimension(a, b, request) == (True, ("cpu", "memory", GPU))
    assert algebra.less_equal_partly_with_dimension_zero_filtered(a, b, request) == (True, ("cpu",))


@given(a=resources, b=resources, missing=st.sampled_from(algebra.Missing))
def test_less_is_never_more_than_less_equal(a: Resource, b: Resource, missing: algebra.Missing) -> None:
    assert algebra.less_equal(a, a, missing)
    assert not algebra.less(a, b, missing) or algebra.less_equal(a, b, missing)
    assert not algebra.less_partly(a, b, missing) or algebra.less_equal_partly(a, b, missing)
    assert not algebra.less_equal(a, b, Z) or algebra.less_equal_names(a, b, Z)[0]
