"""Plugins: the forms they are written in, how their arguments are read, and when they open and close."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.dtypes import CPU, F64
from pumice.columns.rows import NodeRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Node, Queue, TaskClass
from pumice.framework.cycle.closing import close_session
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginError, PolicyError
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE, Argument, plugin, read_arguments
from pumice.testing.build import cluster, node, podgroup, pods, policy, run, session

TIERS = "tiers:\n- plugins: [{name: %s, arguments: {%s}}]\n"

# -- one question, four forms: the fuller node is the better one


@plugin("fuller")
@points.node_order
def over_rows(ssn: Session, cls: TaskClass, nodes: NodeRows, *, weight: float = 1.0) -> F64:
    return weight * nodes.used[:, CPU]


@plugin("fuller")
@points.node_order
def node_by_node(ssn: Session, cls: TaskClass, node: Node, *, weight: float = 1.0) -> float:
    return weight * node.used[CPU]


@plugin("fuller")
class WithMethods:
    def __init__(self, ssn: Session, *, weight: float = 1.0) -> None:
        self.weight = weight

    @points.node_order
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return self.weight * nodes.used[:, CPU]


@plugin("fuller")
class WithLifeCycle:
    def __init__(self, ssn: Session, *, weight: float = 1.0) -> None:
        self.weight = weight

    def on_session_open(self, ssn: Session) -> None:
        ssn.add(points.node_order, self.score)

    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return self.weight * nodes.used[:, CPU]


FORMS = pytest.mark.parametrize(
    "form",
    [
        pytest.param(over_rows, id="a function over rows"),
        pytest.param(node_by_node, id="a function for one node"),
        pytest.param(WithMethods, id="a class with methods at points"),
        pytest.param(WithLifeCycle, id="a class with Volcano's life cycle"),
    ],
)


@FORMS
@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        pytest.param("", "b", id="default"),
        pytest.param("weight: 2", "b", id="given"),
        pytest.param("weight: -1", "a", id="turned round"),
    ],
)
def test_every_form_is_asked(form: Any, arguments: str, where: str) -> None:
    running = pods("old", 1, cpu=2, on="b")
    state = cluster(node("a"), node("b"), podgroup("old"), running, podgroup("g", phase="Inqueue"), pods("g", 1))
    ran = run(state, TIERS % ("fuller", arguments), actions="allocate", plugins=[form])
    assert ran.binds == {"ns/g-0": where}


@FORMS
def test_every_form_can_be_switched_off(form: Any) -> None:
    ssn = session(cluster(), "tiers: [{plugins: [{name: fuller, enableNodeOrder: false}]}]", plugins=[form])
    assert not ssn.has(points.node_order)


@pytest.mark.parametrize(
    ("form", "keeps"),
    [
        pytest.param(over_rows, "columns", id="a function"),
        pytest.param(WithMethods, "columns", id="methods"),
        pytest.param(WithLifeCycle, "python", id="Volcano's life cycle may keep what it likes"),
    ],
)
def test_what_is_known_of_it(form: Any, keeps: str) -> None:
    spec = getattr(form, PLUGIN_ATTRIBUTE)
    assert (spec.name, spec.keeps) == ("fuller", keeps)
    assert spec.arguments == {"weight": Argument("weight", "float", 1.0)}


def test_an_instance_for_every_session() -> None:
    known = policy(TIERS % ("fuller", ""), actions="allocate", plugins=[WithMethods])
    (option,) = known.tiers[0]
    assert option.spec.build(None, {}) is not option.spec.build(None, {})


def test_an_instance_may_leave_points_out() -> None:
    @plugin("choosy")
    class Choosy:
        def __init__(self, ssn: Session, *, strict: bool = False) -> None:
            self.unused_points = () if strict else (points.overused,)

        @points.overused
        def overused(self, queue: Queue) -> bool:
            return True

    asked = [session(cluster(), TIERS % ("choosy", text), plugins=[Choosy]) for text in ("", "strict: true")]
    assert [ssn.has(points.overused) for ssn in asked] == [False, True]


def without_hooks(ssn: Session) -> None: ...


class WithoutHooks:
    pass


def without_default(ssn: Session, *, weight: float) -> None: ...


class WithoutDefault:
    def __init__(self, ssn: Session, *, weight: float) -> None: ...


NO_HOOK = "plugin mine: no hook found; put @<point> under @plugin, or define on_session_open(ssn)"
NO_DEFAULT = "plugin mine: argument weight has no default"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        pytest.param(without_hooks, NO_HOOK, id="a function without hook"),
        pytest.param(WithoutHooks, NO_HOOK, id="a class without hook"),
        pytest.param(without_default, NO_DEFAULT, id="an argument of a function"),
        pytest.param(WithoutDefault, NO_DEFAULT, id="an argument of a class"),
    ],
)
def test_what_is_no_plugin(target: Any, problem: str) -> None:
    with pytest.raises(PluginError) as raised:
        plugin("mine")(target)
    assert str(raised.value) == problem
    assert not hasattr(target, PLUGIN_ATTRIBUTE)


# -- opening and closing


def test_volcano_style_plugins_open_in_order_and_close_in_reverse() -> None:
    calls: list[str] = []

    def named(name: str) -> Any:
        @plugin(name)
        class Notified:
            def __init__(self, ssn: Session) -> None:
                calls.append(f"make {name}")

            def on_session_open(self, ssn: Session) -> None:
                calls.append(f"open {name}")
                ssn.add(points.session_close, self.done)

            def on_session_close(self, ssn: Session) -> None:
                calls.append(f"close {name}")

            def done(self) -> None:
                calls.append(f"done {name}")

        return Notified

    conf = "tiers:\n- plugins: [{name: a}, {name: b}]\n- plugins: [{name: c}]\n"
    ssn = session(cluster(), conf, plugins=[named(name) for name in "abc"])
    assert calls == ["make a", "open a", "make b", "open b", "make c", "open c"]
    calls.clear()
    close_session(ssn)
    assert calls == ["done c", "done b", "done a", "close c", "close b", "close a"]


def test_python_state_is_notified_of_a_rollback_and_columns_are_not() -> None:
    reports: list[str] = []

    class Counting:
        def __init__(self, ssn: Session) -> None:
            self.ssn, self.column = ssn, ssn.column(f"{self.name}.count", "", 1)

        @points.on_allocate
        def came(self, run: TaskRun) -> None:
            reports.append(f"{self.name} +{len(run)}")
            self.ssn.journal.add(self.column, 0, len(run))

        @points.on_deallocate
        def went(self, run: TaskRun) -> None:
            reports.append(f"{self.name} -{len(run)}")
            self.ssn.journal.add(self.column, 0, -len(run))

    makers = [
        plugin(name, keeps=name)(type(name, (Counting,), {"name": name, "__init__": Counting.__init__}))
        for name in ("columns", "python")
    ]
    conf = "tiers: [{plugins: [{name: columns}, {name: python}]}]"
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 2)), conf, plugins=makers)
    with ssn.statement() as stmt:
        stmt.allocate(ssn.tables.jobs.tasks[0].tolist(), [0, 0])
        assert [instance.column.array[0] for _, instance in ssn.hooks.opened] == [2, 2]
    assert reports == ["columns +2", "python +2", "python -2"]
    assert [instance.column.array[0] for _, instance in ssn.hooks.opened] == [0, 0]


# -- arguments

KNOWN = {
    "count": Argument("count", "int", 1),
    "weight": Argument("weight", "float", 1.0),
    "on": Argument("on", "bool", False),
    "label": Argument("label", "str", ""),
    "anything": Argument("anything", "Any", None),
    "node_order_weight": Argument("node_order_weight", "float", 1.0),
    "resources_": Argument("resources_", "dict[str, float]", None),
    "resources_all": Argument("resources_all", "bool", False),
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        pytest.param({}, {}, id="nothing: the defaults are the constructor's"),
        pytest.param({"count": 3}, {"count": 3}, id="int"),
        pytest.param({"weight": 3}, {"weight": 3.0}, id="an int for a float"),
        pytest.param({"weight": 2.5}, {"weight": 2.5}, id="float"),
        pytest.param({"on": True}, {"on": True}, id="bool"),
        *[pytest.param({"on": text}, {"on": True}, id=f"bool from {text}") for text in ("1", "t", "True", "TRUE")],
        *[pytest.param({"on": text}, {"on": False}, id=f"bool from {text}") for text in ("0", "f", "False")],
        pytest.param({"label": "a"}, {"label": "a"}, id="str"),
        pytest.param({"anything": [1]}, {"anything": [1]}, id="any value"),
        pytest.param({"node.order-weight": 2}, {"node_order_weight": 2.0}, id="points and dashes"),
        pytest.param(
            {"resources.nvidia.com/gpu": 2, "resources.cpu": 1},
            {"resources_": {"nvidia.com/gpu": 2.0, "cpu": 1.0}},
            id="a family keeps the rest of the name as written",
        ),
        pytest.param({"resources.all": "true"}, {"resources_all": True}, id="a name of its own before its family"),
    ],
)
def test_read_arguments(given: dict[str, Any], read: dict[str, Any]) -> None:
    found, problems = read_arguments(KNOWN, given, "conf")
    assert (found, problems) == (read, [])
    assert [type(value) for value in found.values()] == [type(value) for value in read.values()]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"count": 1.0}, "argument count: found 1.0, wanted a whole number", id="float for int"),
        pytest.param({"count": True}, "argument count: found True, wanted a whole number", id="bool for int"),
        pytest.param({"weight": "1"}, "argument weight: found '1', wanted a number", id="text for float"),
        pytest.param({"weight": True}, "argument weight: found True, wanted a number", id="bool for float"),
        pytest.param({"weight": float("inf")}, "argument weight: found inf, wanted a number", id="infinite"),
        pytest.param({"weight": float("nan")}, "argument weight: found nan, wanted a number", id="no number"),
        pytest.param({"on": 1}, "argument on: found 1, wanted true or false", id="int for bool"),
        pytest.param({"on": "yes"}, "argument on: found 'yes', wanted true or false", id="another text for bool"),
        pytest.param({"label": 1}, "argument label: found 1, wanted a text", id="int for str"),
        pytest.param(
            {"resources.cpu": "1"}, "argument resources.cpu: found '1', wanted a number", id="one of a family"
        ),
        pytest.param({"wieght": 1}, 'unknown argument "wieght"; did you mean "weight"?', id="mistyped"),
        pytest.param(
            {"node.order-wieght": 1},
            'unknown argument "node.order-wieght"; did you mean "node.order-weight"?',
            id="mistyped, and punctuated as found",
        ),
    ],
)
def test_a_wrong_argument_is_named_and_leaves_the_default(given: dict[str, Any], problem: str) -> None:
    assert read_arguments(KNOWN, given, "conf: here") == ({}, [f"conf: here: {problem}"])


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        pytest.param({}, 'conf: unknown argument "zzz"', id="of none"),
        pytest.param(
            {"b": Argument("b", "int", 0), "a": Argument("a", "int", 0)},
            'conf: unknown argument "zzz"; known: a, b',
            id="of some that are nothing like it",
        ),
    ],
)
def test_an_argument_that_looks_like_none(known: dict[str, Argument], problem: str) -> None:
    assert read_arguments(known, {"zzz": 1}, "conf") == ({}, [problem])


def test_one_wrong_argument_does_not_keep_the_others_out() -> None:
    found, problems = read_arguments(KNOWN, {"count": "1", "weight": 2, "lable": 3}, "conf")
    assert found == {"weight": 2.0}
    assert problems == [
        "conf: argument count: found '1', wanted a whole number",
        'conf: unknown argument "lable"; did you mean "label"?',
    ]


def test_a_conf_with_wrong_arguments_names_the_plugin() -> None:
    with pytest.raises(PolicyError) as raised:
        policy(TIERS % ("fuller", "weight: heavy"), actions="allocate", plugins=[over_rows])
    (problem,) = raised.value.problems
    assert problem == "conf: tiers[0].plugins[0] (fuller): argument weight: found 'heavy', wanted a number"


def test_a_family_of_arguments_without_a_member_is_unknown() -> None:
    known = {"resources_": Argument("resources_", "Mapping[str, float] | None", None)}
    values, problems = read_arguments(known, {"resources.": 5}, "conf")
    assert values == {}
    assert len(problems) == 1
    assert problems[0].startswith('conf: unknown argument "resources."')
