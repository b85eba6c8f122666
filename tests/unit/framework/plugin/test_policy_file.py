"""The policy file: what each part means, both spellings of every switch, and one line for whatever is wrong.

(Texts that are no YAML at all: tests/unit/runtime/test_conf.py.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE, plugin
from pumice.framework.plugin.policy_file import ENTRIES_MAX, PluginOption, Policy, read_policy
from pumice.framework.plugin.registry import Dialect, Registry, Switches, action_spec
from pumice.volcano.points import FEATURE_SWITCHES, POINTS


def tidy(ssn: Session, *, rounds: int = 1) -> None:
    """An action."""


def rest(ssn: Session) -> None:
    """An action without arguments."""


@plugin("ready")
@points.job_ready
def ready(ssn: Session, job: Job, *, strict: bool = False) -> bool:
    return True


@plugin("busy")
@points.overused
def busy(ssn: Session, queue: Queue) -> bool:
    return True


@plugin("proportion")
@points.overused
def proportion(ssn: Session, queue: Queue) -> bool:
    return True


@plugin("drf")
class Drf:
    def __init__(self, ssn: Session, *, hierarchy: bool = False) -> None:
        pass

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return True


@plugin("late", keeps="python")
class Late:
    def __init__(self, ssn: Session) -> None:
        pass

    def on_session_open(self, ssn: Session) -> None:
        pass


def dialect(*actions: Any, plugins: tuple[Any, ...] = (), **missing: str) -> Dialect:
    specs = [getattr(target, PLUGIN_ATTRIBUTE) for target in plugins]
    known = {f.__name__: action_spec(f.__name__, f) for f in actions}
    return Dialect(known, {s.name: s for s in specs}, missing, POINTS, FEATURE_SWITCHES, not_both)


def not_both(plugins: Mapping[str, Switches]) -> str:
    """What this language says of two plugins that exclude each other."""
    both = "proportion" in plugins and plugins.get("drf", {}).get("Hierarchy")
    return "proportion and drf with hierarchy enabled conflicts" if both else ""


REGISTRY = Registry(
    {
        "volcano": dialect(tidy, rest, plugins=(ready, busy, proportion, Drf, Late), shuffle="shuffle: not here yet"),
        "other": dialect(rest, plugins=(busy,)),
    }
)


VOLCANO = REGISTRY.dialects["volcano"]
SWITCHES = VOLCANO.switches


def read(conf: Any, **more: Any) -> Policy:
    return read_policy(conf, REGISTRY, **more)


def with_plugins(*plugins: Any, **more: Any) -> Any:
    return {"actions": "tidy", "tiers": [{"plugins": list(plugins)}], **more}


def option(**entry: Any) -> PluginOption:
    ((found,),) = read(with_plugins({"name": "ready", **entry})).tiers
    return found


# -- what is read


def test_a_conf_with_everything() -> None:
    policy = read(
        {
            "actions": " tidy,rest , tidy",
            "tiers": [
                {"plugins": [{"name": "ready", "arguments": {"strict": "true"}}, {"name": "busy"}]},
                {"plugins": None},
                {"plugins": [{"name": "drf", "enableHierarchy": True}]},
            ],
            "configurations": [{"name": "tidy", "arguments": {"rounds": 3}}, {"name": "tidy", "arguments": {"x": 1}}],
            "metrics": {"type": "prometheus"},
        }
    )
    assert [(a.name, a.run, a.arguments) for a in policy.actions] == [
        ("tidy", tidy, {"rounds": 3}),
        ("rest", rest, {}),
        ("tidy", tidy, {"rounds": 3}),
    ]
    assert [[(o.spec.name, o.arguments) for o in tier] for tier in policy.tiers] == [
        [("ready", {"strict": True}), ("busy", {})],
        [],
        [("drf", {"hierarchy": True})],
    ]
    assert (policy.dialect, policy.metrics, policy.warnings) == (VOLCANO, {"type": "prometheus"}, ())
    assert [policy.has_action(name) for name in ("rest", "sleep")] == [True, False]
    after = [("tidy", "rest"), ("rest", "tidy"), ("rest", "rest"), ("sleep", "tidy")]
    assert [policy.comes_after(*names) for names in after] == [False, True, False, False]
    assert [option.spec.name for option in policy.options] == ["ready", "busy", "drf"]


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param({"actions": "tidy"}, id="no tiers"),
        pytest.param({"actions": "tidy", "tiers": None, "configurations": None, "metrics": None}, id="nothing in them"),
        pytest.param({"actions": "tidy", "tiers": [], "configurations": [], "metrics": {}}, id="empty"),
    ],
)
def test_only_actions_are_needed(conf: Any) -> None:
    policy = read(conf)
    assert ([action.name for action in policy.actions], policy.tiers, policy.metrics) == (["tidy"], (), {})


@pytest.mark.parametrize(
    ("conf", "home"),
    [
        pytest.param({"actions": "rest", "tiers": [{"plugins": [{"name": "busy"}]}]}, "volcano", id="volcano"),
        pytest.param(
            {"dialect": "other", "actions": "rest", "tiers": [{"plugins": [{"name": "busy"}]}]}, "other", id="another"
        ),
        pytest.param(
            {"actions": "other/rest", "tiers": [{"plugins": [{"name": "other/busy"}]}]}, "other", id="reached into"
        ),
    ],
)
def test_dialects(conf: Any, home: str) -> None:
    policy = read(conf)
    assert policy.actions[0].run is REGISTRY.dialects[home].actions["rest"].run
    assert policy.tiers[0][0].spec is REGISTRY.dialects[home].plugins["busy"]


# -- switches


@pytest.mark.parametrize("stem", sorted(SWITCHES))
def test_both_spellings_of_every_switch(stem: str) -> None:
    for value in (False, True):
        assert option(**{f"enable{stem}": value}).switches[stem] is value
        assert option(**{f"enabled{stem}": value}).switches[stem] is value


def test_a_switch_that_is_not_written_is_on_but_for_two() -> None:
    assert {stem for stem, on in option().switches.items() if not on} == {"ClusterOrder", "Hierarchy"}
    ((found,),) = read(with_plugins({"name": "ready", "enableJobReady": True}), unset_switches=False).tiers
    assert {stem for stem, on in found.switches.items() if on} == {"JobReady"}


def test_one_switch_leaves_the_others() -> None:
    plain, less = option().switches, option(enableTaskOrder=False).switches
    assert {stem for stem in SWITCHES if plain[stem] != less[stem]} == {"TaskOrder"}


@pytest.mark.parametrize(
    ("point", "off", "enabled"),
    [
        pytest.param("job_ready", ["JobReady"], False, id="its own switch"),
        pytest.param("job_ready", ["JobOrder"], True, id="the switch of another"),
        pytest.param("pre_predicate", ["Predicate"], False, id="one switch for two points"),
        pytest.param("victim_queue_order", list(SWITCHES), True, id="none can switch it off"),
        pytest.param("cluster_order", [], False, id="off as long as nobody asks"),
        pytest.param("simulate_add_task", ["Preemptable"], True, id="one of two is enough"),
        pytest.param("simulate_add_task", ["Allocatable"], True, id="the other one too"),
        pytest.param("simulate_add_task", ["Preemptable", "Allocatable"], False, id="none of two is not"),
    ],
)
def test_which_hooks_a_switch_turns_off(point: str, off: list[str], enabled: bool) -> None:
    assert option(**{f"enable{stem}": False for stem in off}).enabled(POINTS[point]) is enabled


def test_which_plugins_are_at_a_point() -> None:
    conf = {
        "actions": "rest",
        "tiers": [
            {"plugins": [{"name": "ready"}]},
            {"plugins": [{"name": "busy", "enableOverused": False}, {"name": "drf"}]},
            {"plugins": [{"name": "late"}]},
        ],
    }
    policy = read(conf)
    assert policy.plugins_at(points.overused) == [[2], [3]]
    assert policy.plugins_at(points.job_ready) == [[0], [3]]
    assert policy.python_plugins == [3]


def test_a_plugin_that_is_listed_twice_is_asked_twice_and_notified_once_an_instance() -> None:
    policy = read({"actions": "rest", "tiers": [{"plugins": [{"name": "late"}]}, {"plugins": [{"name": "late"}]}]})
    assert policy.plugins_at(points.job_ready) == [[1], [1]]
    assert policy.plugins_at(points.on_allocate) == [[0], [1]]


# -- what a session needs in which nothing waits


@plugin("closing")
@points.session_close
def closing(ssn: Session) -> None: ...


@plugin("publishing")
class Publishing:
    def __init__(self, ssn: Session) -> None: ...

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return False

    def figures(self) -> Mapping[str, Any]:
        return {}


@plugin("waking")
class Waking:
    def __init__(self, ssn: Session) -> None: ...

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return False

    def wakes_at(self) -> float | None:
        return None


def work(ssn: Session) -> None: ...


def of_waiting(ssn: Session) -> None: ...


IDLE = Registry(
    {
        "volcano": Dialect(
            {
                "work": action_spec("work", work),
                "of-waiting": action_spec("of-waiting", of_waiting, only_for_waiting=True),
            },
            {s.name: s for s in (getattr(t, PLUGIN_ATTRIBUTE) for t in (ready, Late, closing, Publishing, Waking))},
            points=POINTS,
        )
    }
)


@pytest.mark.parametrize(
    ("actions", "plugins", "only"),
    [
        pytest.param("of-waiting", ["ready"], True, id="actions for those who wait"),
        pytest.param("of-waiting, work", ["ready"], False, id="one action that may do more"),
        pytest.param("of-waiting", ["late"], False, id="a plugin that keeps what it likes"),
    ],
)
def test_whether_a_policy_does_anything_where_nothing_waits(actions: str, plugins: list[str], only: bool) -> None:
    conf = {"actions": actions, "tiers": [{"plugins": [{"name": name} for name in plugins]}]}
    assert read_policy(conf, IDLE).only_for_waiting is only


def test_which_plugins_are_heard_where_nothing_waits() -> None:
    """Plugins with a hook for the end, or that wake the scheduler; what others publish is computed when it is read."""
    names = ["ready", "closing", "publishing", "waking"]
    conf = {"actions": "of-waiting", "tiers": [{"plugins": [{"name": name} for name in names]}]}
    policy = read_policy(conf, IDLE)
    assert [names[i] for i in policy.heard_when_idle] == ["closing", "waking"]
    assert [names[i] for i in policy.publishing] == ["publishing"]


def test_hierarchy_reaches_the_plugin_that_wants_to_know() -> None:
    ((drf, other),) = read(with_plugins({"name": "drf", "enabledHierarchy": True}, {"name": "busy"})).tiers
    assert (drf.arguments, other.arguments) == ({"hierarchy": True}, {})


# -- what is wrong


FATAL = [
    pytest.param(None, "conf: found nothing, wanted a mapping with actions and tiers", id="nothing"),
    pytest.param(["tidy"], "conf: found a list, wanted a mapping with actions and tiers", id="a list"),
    pytest.param(
        {"tiers": []},
        "conf: actions: found nothing, wanted a comma separated list such as enqueue, allocate, backfill",
        id="no actions",
    ),
    pytest.param(
        {"actions": "  "},
        "conf: actions: found '  ', wanted a comma separated list such as enqueue, allocate, backfill",
        id="empty actions",
    ),
    pytest.param(
        {"actions": ["tidy"]},
        "conf: actions: found ['tidy'], wanted a comma separated list such as enqueue, allocate, backfill",
        id="a list of actions",
    ),
    pytest.param({"actions": "tidi"}, 'conf: actions: unknown action "tidi"; did you mean "tidy"?', id="mistyped"),
    pytest.param({"actions": "tidy,"}, 'conf: actions: unknown action ""; known: rest, tidy', id="a comma too many"),
    pytest.param({"actions": "shuffle"}, "conf: actions: shuffle: not here yet", id="an action that is not here yet"),
    pytest.param(
        {"actions": "tidy", "dialect": "klingon"},
        'conf: dialect: found "klingon", wanted one of other, volcano',
        id="dialect",
    ),
    pytest.param(
        {"actions": "tidy", "dialect": ["volcano"]},
        "conf: dialect: found \"['volcano']\", wanted one of other, volcano",
        id="no name of a dialect",
    ),
    pytest.param(
        with_plugins({"name": "proportion"}, {"name": "drf", "enableHierarchy": True}),
        "conf: tiers[0].plugins: proportion and drf with hierarchy enabled conflicts",
        id="plugins that exclude each other",
    ),
]

PROBLEMS = [
    pytest.param({"actions": "tidy", "tier": []}, 'conf: unknown key "tier"; did you mean "tiers"?', id="key"),
    pytest.param({"actions": "tidy", "tiers": {}}, "conf: tiers: found a mapping, wanted a list", id="tiers"),
    pytest.param(
        {"actions": "tidy", "tiers": ["ready"]},
        "conf: tiers[0]: found 'ready', wanted a mapping with plugins",
        id="tier",
    ),
    pytest.param(
        {"actions": "tidy", "tiers": [{"plugin": []}]},
        'conf: tiers[0]: unknown key "plugin"; did you mean "plugins"?',
        id="key of a tier",
    ),
    pytest.param(
        {"actions": "tidy", "tiers": [{"plugins": "ready"}]},
        "conf: tiers[0].plugins: found a text, wanted a list",
        id="plugins",
    ),
    pytest.param(
        with_plugins({"name": "busy"}, "ready"),
        "conf: tiers[0].plugins[1]: found 'ready', wanted a mapping with the plugin's name",
        id="plugin",
    ),
    pytest.param(
        with_plugins({"arguments": {}}),
        "conf: tiers[0].plugins[0]: found {'arguments': {}}, wanted a mapping with the plugin's name",
        id="plugin without name",
    ),
    pytest.param(
        with_plugins({"name": "raedy"}),
        'conf: tiers[0].plugins[0]: unknown plugin "raedy"; did you mean "ready"?',
        id="mistyped plugin",
    ),
    pytest.param(
        with_plugins({"name": "of-my-own"}),
        'conf: tiers[0].plugins[0]: unknown plugin "of-my-own"; known: busy, drf, late, proportion, ready;'
        " is it in --plugins-dir?",
        id="a plugin of the user's own that is nowhere",
    ),
    pytest.param(
        with_plugins({"name": "shuffle"}),
        "conf: tiers[0].plugins[0]: shuffle: not here yet",
        id="a plugin that is not here yet",
    ),
    pytest.param(
        with_plugins({"name": "ready", "enableJobRaedy": True}),
        'conf: tiers[0].plugins[0] (ready): unknown switch "enableJobRaedy"; did you mean "enableJobReady"?',
        id="switch",
    ),
    pytest.param(
        with_plugins({"name": "ready", "enableJobReady": "yes"}),
        "conf: tiers[0].plugins[0] (ready): enableJobReady: found 'yes', wanted true or false",
        id="value of a switch",
    ),
    pytest.param(
        {"actions": "tidy", "metrics": "prometheus"}, "conf: metrics: found a text, wanted a mapping", id="metrics"
    ),
    pytest.param(
        with_plugins({"name": "ready", "arguments": ["strict"]}),
        "conf: tiers[0].plugins[0] (ready): arguments: found ['strict'], wanted a mapping",
        id="arguments",
    ),
    pytest.param(
        with_plugins({"name": "ready", "arguments": {"strict": 1}}),
        "conf: tiers[0].plugins[0] (ready): argument strict: found 1, wanted true or false",
        id="argument",
    ),
    pytest.param(
        {"actions": "tidy", "configurations": {}},
        "conf: configurations: found a mapping, wanted a list",
        id="configurations",
    ),
    pytest.param(
        {"actions": "tidy", "configurations": [{"arguments": {}}]},
        "conf: configurations[0]: found {'arguments': {}}, wanted a name and arguments",
        id="configuration without name",
    ),
    pytest.param(
        {"actions": "tidy", "configurations": [{"name": "tidy", "arguments": 3}]},
        "conf: configurations[0]: found {'name': 'tidy', 'arguments': 3}, wanted a name and arguments",
        id="configuration without arguments",
    ),
    pytest.param(
        {"actions": "tidy", "configurations": [{"name": "tidi"}]},
        'conf: configurations: unknown action "tidi"; did you mean "tidy"?',
        id="configuration of nothing",
    ),
    pytest.param(
        {"actions": "tidy", "configurations": [{"name": "tidy", "arguments": {"round": 1}}]},
        'conf: configurations: tidy: unknown argument "round"; did you mean "rounds"?',
        id="argument of an action",
    ),
]


@pytest.mark.parametrize(("conf", "problem"), FATAL)
def test_without_this_there_is_no_policy_however_it_is_read(conf: Any, problem: str) -> None:
    for strict in (True, False):
        with pytest.raises(PolicyError) as raised:
            read(conf, strict=strict)
        assert raised.value.problems == (problem,)


@pytest.mark.parametrize(("conf", "problem"), PROBLEMS)
def test_an_error_when_read_strictly_else_a_warning(conf: Any, problem: str) -> None:
    with pytest.raises(PolicyError) as raised:
        read(conf)
    assert raised.value.problems == (problem,)
    assert str(raised.value) == problem
    lenient = read(conf, strict=False)
    assert lenient.warnings == (problem,)
    assert [action.name for action in lenient.actions] == ["tidy"]


def test_all_problems_at_once_the_fatal_ones_first() -> None:
    conf = {"actions": "tidi, rset", "tiers": [{"plugins": [{"name": "raedy"}]}], "metric": {}}
    with pytest.raises(PolicyError) as raised:
        read(conf)
    assert [problem.partition(";")[0] for problem in raised.value.problems] == [
        'conf: actions: unknown action "tidi"',
        'conf: actions: unknown action "rset"',
        'conf: unknown key "metric"',
        'conf: tiers[0].plugins[0]: unknown plugin "raedy"',
    ]
    assert str(raised.value).splitlines() == list(raised.value.problems)


def test_a_lenient_reading_keeps_what_it_understands() -> None:
    switches = {"enableJobReady": "no", "enableJobOrder": None, "enableClusterOrder": None, "enableTaskOrder": False}
    entry = {"name": "ready", **switches, "arguments": {"strict": 1}}
    ((found,),) = read(with_plugins("nonsense", entry, {"name": "raedy"}), strict=False).tiers
    assert (found.spec.name, found.arguments) == ("ready", {})
    stems = ("JobReady", "JobOrder", "ClusterOrder", "TaskOrder")
    assert [found.switches[stem] for stem in stems] == [True, True, False, False]


@pytest.mark.parametrize(
    ("plugins", "fine"),
    [
        pytest.param([[{"name": "proportion"}, {"name": "drf"}]], True, id="without hierarchy"),
        pytest.param([[{"name": "proportion"}], [{"name": "drf", "enableHierarchy": True}]], True, id="in two tiers"),
        pytest.param([[{"name": "drf", "enableHierarchy": True}, {"name": "proportion"}]], False, id="in either order"),
    ],
)
def test_which_plugins_exclude_each_other(plugins: Any, fine: bool) -> None:
    conf = {"actions": "tidy", "tiers": [{"plugins": tier} for tier in plugins]}
    assert len(read(conf, check_conflicts=False).tiers) == len(plugins)
    if fine:
        read(conf)
    else:
        with pytest.raises(PolicyError, match="conflicts"):
            read(conf)


def test_a_conf_cannot_be_endless() -> None:
    conf = {
        "actions": "tidy," * ENTRIES_MAX + "nobody reads this far",
        "tiers": [{"plugins": [{"name": "busy"}] * (ENTRIES_MAX + 1)}],
    }
    policy = read(conf, strict=False)
    assert (len(policy.actions), len(policy.tiers[0])) == (ENTRIES_MAX, ENTRIES_MAX)
    with pytest.raises(PolicyError) as error:
        read(conf)
    assert [said for said in error.value.problems if "at most" in said] == [
        f"conf: actions: found {ENTRIES_MAX + 1} entries, wanted {ENTRIES_MAX} at most",
        f"conf: tiers[0].plugins: found {ENTRIES_MAX + 1} entries, wanted {ENTRIES_MAX} at most",
    ]


def test_a_switch_without_value_is_on() -> None:
    assert read(with_plugins({"name": "ready", "enableJobReady": None})).tiers[0][0].switches["JobReady"]
