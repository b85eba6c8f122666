"""Read a conf file (``volcano-scheduler.conf``) strictly, as a policy.

Source: Volcano's format (``actions``, ``tiers``, ``configurations``, ``metrics``), and its rule that a switch that is
not written is on. In addition, both spellings of a switch are accepted, and whatever is not understood is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from inspect import signature

from msgspec import Struct, field

from pumice.columns.ledger import Accounting
from pumice.framework.plugin.errors import PolicyError, did_you_mean
from pumice.framework.plugin.plugin import PluginSpec, read_arguments
from pumice.framework.plugin.point import Question
from pumice.framework.plugin.registry import Dialect, Registry
from pumice.model.plain_words import kind_of
from pumice.model.usage import UsageWindow

ENTRIES_MAX = 200  # plugins and actions a conf may list; each costs work in every cycle
WINDOWS_MAX = 8  # of usage kept for one plugin; each costs a sum for every pod that ends
DEFAULT_DIALECT = "volcano"
#: ``metrics`` is Volcano's section about the source of node usage. It is kept as read, and only the shell knows its
#: fields.
_TOP_KEYS = ("actions", "tiers", "configurations", "metrics", "dialect")


class PluginOption(Struct, frozen=True):
    """One plugin in one tier: its switches, its arguments, and the usage that is kept for it."""

    spec: PluginSpec
    switches: Mapping[str, bool]
    arguments: Mapping[str, object]
    usage: tuple[UsageWindow, ...] = ()

    def enabled(self, point: Question) -> bool:
        """Return True if the plugin's hooks at the point are on."""
        # A switch that the file does not mention has its default by now (``_plugin``), so a missing one is off.
        return not point.any_switch or any(self.switches.get(s, False) for s in point.any_switch)


class ActionOption(Struct, frozen=True):
    """One step of the cycle, ``run(ssn, **arguments)``. ``home``: the dialect to which it belongs."""

    name: str
    run: Callable[..., None]
    arguments: Mapping[str, object]
    only_for_waiting: bool = False
    home: Dialect | None = None


class Policy(Struct, frozen=True, dict=True):
    """What decides: actions in order and plugins in tiers, in a language. ``warnings``: problems that a lenient reading
    ignored. ``sections``: what else the file says in keys of its dialect."""

    actions: tuple[ActionOption, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    dialect: Dialect = field(default_factory=Dialect)
    metrics: Mapping[str, object] = {}
    sections: Mapping[str, Mapping[str, object]] = {}
    warnings: tuple[str, ...] = ()

    def has_action(self, name: str) -> bool:
        """Return True if the policy has an action of that name."""
        return any(action.name == name for action in self.actions)

    def comes_after(self, first: str, name: str) -> bool:
        """Return True if an action runs after the last run of another one in a cycle."""
        # An action may be listed several times, and the last run of ``first`` counts.
        names = [action.name for action in self.actions]
        return first in names and name in names[len(names) - names[::-1].index(first) :]

    @cached_property
    def searching_actions(self) -> tuple[str, ...]:
        """The names of the actions whose work is limited by steps, in order: those with ``maxSearchSteps``."""
        return tuple(each.name for each in self.actions if "maxSearchSteps" in signature(each.run).parameters)

    def section(self, name: str) -> Mapping[str, object]:
        """Return one of ``sections``, empty if it is missing."""
        return self.sections.get(name) or {}

    @cached_property
    def accounting(self) -> Accounting:
        """The status changes that its actions may make."""
        # An action of the other language brings the status changes that it makes, such as KAI's consolidation in a
        # policy of Volcano's.
        found = self.dialect.accounting
        for action in self.actions:
            found = found.also(action.home.accounting) if action.home is not None else found
        return found

    @cached_property
    def options(self) -> list[PluginOption]:
        """All plugins, tier after tier."""
        return [option for tier in self.tiers for option in tier]

    @cached_property
    def python_plugins(self) -> list[int]:
        """Positions in ``options`` of the plugins with plain Python state, by name."""
        kept = (i for i, option in enumerate(self.options) if option.spec.keeps == "python")
        return sorted(kept, key=lambda i: self.options[i].spec.name)

    @cached_property
    def only_for_waiting(self) -> bool:
        """True if a session in which no job waits moves nothing, and no plugin must be notified of it."""
        # A plugin with plain Python state may count sessions, so it sees each of them.
        return not self.python_plugins and all(action.only_for_waiting for action in self.actions)

    @cached_property
    def heard_when_idle(self) -> list[int]:
        """Positions of the plugins that take part in a session in which nothing waits: notified of its end, or say
        when they wake."""
        closing = [point for point in self.dialect.points.values() if point.name == "session_close"]
        return [
            i
            for i, option in enumerate(self.options)
            if option.spec.wakes or any(option.spec.hooks_at(point) for point in closing)
        ]

    @cached_property
    def usage_windows(self) -> tuple[UsageWindow, ...]:
        """The usage that the store keeps for its plugins."""
        return tuple(dict.fromkeys(window for option in self.options for window in option.usage))

    @cached_property
    def all_positions(self) -> list[int]:
        """Positions of all plugins."""
        return list(range(len(self.options)))

    @cached_property
    def publishing(self) -> list[int]:
        """Positions of the plugins that publish figures."""
        return [i for i, option in enumerate(self.options) if option.spec.publishes]

    @cached_property
    def waking(self) -> list[int]:
        """Positions of the plugins that say when they wake."""
        return [i for i, option in enumerate(self.options) if option.spec.wakes]

    @cached_property
    def notified_at_end(self) -> list[int]:
        """Positions of the plugins that are notified of the end beside every point (Volcano's life cycle)."""
        return [i for i, option in enumerate(self.options) if hasattr(option.spec.target, "on_session_close")]

    def plugins_at(self, point: Question) -> list[list[int]]:
        """Return positions in ``options`` of the plugins that are on at the point and have, or may add, hooks there, by
        tier, without empty tiers.

        If a plugin is listed twice, its last instance is asked at both places, but every instance is notified.
        Source: Volcano (functions are registered by name, event handlers one after the other).
        """
        found = self._plugins_at.get(point)
        if found is None:
            found = self._plugins_at[point] = [tier for tier in self._find_plugins_at(point) if tier]
        return found

    def _find_plugins_at(self, point: Question) -> Iterator[list[int]]:
        """Compute ``plugins_at``, with empty tiers."""
        # By target, since one plugin may be listed under a name of its dialect and under one with a prefix.
        last = {option.spec.target: i for i, option in enumerate(self.options)}
        first = 0
        for tier in self.tiers:
            on = [i for i, o in enumerate(tier, first) if o.enabled(point) and o.spec.may_answer_at(point)]
            yield on if point.tells else [last[self.options[i].spec.target] for i in on]
            first += len(tier)

    @cached_property
    def _plugins_at(self) -> dict[Question, list[list[int]]]:
        """What ``plugins_at`` has returned, by point."""
        return {}


def read_policy(
    conf: object, registry: Registry, *, strict: bool = True, unset_switches: bool = True, check_conflicts: bool = True
) -> Policy:
    """Return the policy of a parsed conf document.

    ``strict``: every problem is an error; a lenient reading drops what it does not understand, as Volcano does, and
    lists it in ``warnings`` (an unknown action is an error in both). ``unset_switches``: value of switches that are not
    written. ``check_conflicts`` False accepts plugins that exclude each other, as a session does for which no conf was
    loaded. Raises: PolicyError with every problem found.
    """
    # One reader for both modes: a lenient reading must understand exactly what a strict one does, and differ only in
    # what becomes of the problems.
    reader = _Reader(registry, unset_switches, check_conflicts)
    policy = reader.read(conf)
    if reader.fatal or (strict and reader.problems):
        raise PolicyError(reader.fatal + reader.problems)
    return policy


class _Reader:
    """Reads one document, and collects all problems, so that a user can mend a file in one go. ``fatal``: problems that
    even a lenient reading does not accept."""

    def __init__(self, registry: Registry, unset: bool, check_conflicts: bool) -> None:
        self.registry = registry
        self.unset = unset
        self.check_conflicts = check_conflicts
        self.problems: list[str] = []
        self.fatal: list[str] = []

    def read(self, conf: object) -> Policy:
        """Return the policy of a document; without actions and tiers if it cannot be read."""
        if not isinstance(conf, Mapping):
            self.fatal.append(f"conf: found {kind_of(conf)}, wanted a mapping with actions and tiers")
            return Policy((), ())
        # Read first, because names of actions, plugins, switches and sections mean something in one dialect only.
        # Nothing else can be checked if it is unknown.
        dialect = conf.get("dialect", DEFAULT_DIALECT)
        if not isinstance(dialect, str) or dialect not in self.registry.dialects:
            self.fatal.append(
                f'conf: dialect: found "{dialect}", wanted one of {", ".join(sorted(self.registry.dialects))}'
            )
            return Policy((), ())
        self.language = self.registry.dialects[dialect]
        known = (*_TOP_KEYS, *self.language.sections)
        self.problems += [
            f'conf: unknown key "{key}"{did_you_mean(str(key), known)}' for key in conf if key not in known
        ]
        # Volcano reads ``enableJobOrder`` and silently ignores ``enabledJobOrder``, which older texts show. Here both
        # set the switch.
        self.switch_of = {
            prefix + stem.lower(): stem for stem in self.language.switches for prefix in ("enable", "enabled")
        }
        actions = self._actions(conf, dialect)
        tiers = self._tiers(conf.get("tiers", list(self.language.default_tiers)), dialect)
        metrics = conf.get("metrics") or {}
        if not isinstance(metrics, Mapping):
            self.problems.append(f"conf: metrics: found {kind_of(metrics)}, wanted a mapping")
            metrics = {}
        sections = dict(self._sections(conf))
        return Policy(actions, tiers, self.language, metrics, sections, tuple(self.problems))

    def _sections(self, conf: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield the sections of the dialect that are valid."""
        for name, problems_of in self.language.sections.items():
            found = conf.get(name) or {}
            if not isinstance(found, Mapping):
                self.problems.append(f"conf: {name}: found {found!r:.80}, wanted a mapping")
                continue
            # As a whole or not at all: a section of which a part was dropped would not do what its author wrote.
            problems = [f"conf: {name}: {problem}" for problem in problems_of(found)]
            self.problems += problems
            if not problems:
                yield name, found

    def _actions(self, conf: Mapping[str, object], dialect: str) -> tuple[ActionOption, ...]:
        """Return the steps of the cycle."""
        # An empty text is no default: a user who wrote ``actions: ""`` meant something, and a scheduler that does
        # nothing is hard to notice.
        text = conf.get("actions", ", ".join(self.language.default_actions) or None)
        if not isinstance(text, str) or not text.strip():
            shown = kind_of(text) if text is None else repr(text)
            self.fatal.append(
                f"conf: actions: found {shown}, wanted a comma separated list such as enqueue, allocate, backfill"
            )
            return ()
        known = self.registry.actions(dialect)
        given = self._configurations(conf.get("configurations"))
        steps = []
        names = [part.strip() for part in text.split(",")]
        self._not_too_many(names, "actions")
        # Bounded before names are looked up, because a file may come from a tenant.
        for name in names[:ENTRIES_MAX]:
            action = self.registry.action(dialect, name)
            if action is None:
                missing = self.registry.why_missing(dialect, name)
                self.fatal.append(
                    "conf: actions: " + (missing or f'unknown action "{name}"{did_you_mean(name, known)}')
                )
                continue
            values, problems = read_arguments(action.arguments, given.get(name, {}), f"conf: configurations: {name}")
            self.problems += problems
            home = self.registry.home(dialect, name)
            steps.append(ActionOption(name, action.run, values, action.only_for_waiting, home))
        # Arguments of an action that is not in ``actions`` are no problem. One file can serve two lists of actions.
        for name in given:
            if self.registry.action(dialect, name) is None:
                self.problems.append(f'conf: configurations: unknown action "{name}"{did_you_mean(name, known)}')
        return tuple(steps)

    def _configurations(self, entries: object) -> dict[str, Mapping[str, object]]:
        """Return arguments of actions by name. Of two entries for one action the first counts, as in Volcano."""
        found: dict[str, Mapping[str, object]] = {}
        for i, entry in enumerate(self._list(entries, "configurations")):
            section: Mapping[str, object] = entry if isinstance(entry, Mapping) else {"arguments": ()}
            name, arguments = section.get("name"), section.get("arguments") or {}
            if not isinstance(arguments, Mapping) or not isinstance(name, str):
                self.problems.append(f"conf: configurations[{i}]: found {entry!r}, wanted a name and arguments")
                continue
            found.setdefault(name, arguments)
        return found

    def _list(self, value: object, where: str) -> list[object]:
        """Return a list of the document, with at most ``ENTRIES_MAX`` entries."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.problems.append(f"conf: {where}: found {kind_of(value)}, wanted a list")
            return []
        self._not_too_many(value, where)
        return value[:ENTRIES_MAX]

    def _not_too_many(self, entries: Sequence[object], where: str) -> None:
        """Report a list that is too long."""
        if len(entries) > ENTRIES_MAX:
            self.problems.append(f"conf: {where}: found {len(entries)} entries, wanted {ENTRIES_MAX} at most")

    def _tiers(self, entries: object, dialect: str) -> tuple[tuple[PluginOption, ...], ...]:
        """Return the plugins by tier."""
        tiers = []
        for i, tier in enumerate(self._list(entries, "tiers")):
            if not isinstance(tier, Mapping):
                self.problems.append(f"conf: tiers[{i}]: found {tier!r}, wanted a mapping with plugins")
                continue
            self._unknown_keys(tier, ("plugins",), f"tiers[{i}]")
            where = f"tiers[{i}].plugins"
            plugins = [
                self._plugin(p, dialect, f"{where}[{k}]") for k, p in enumerate(self._list(tier.get("plugins"), where))
            ]
            options = tuple(p for p in plugins if p is not None)
            # By tier, because Volcano lets plugins that exclude each other be in different tiers.
            conflict = self.language.conflict({p.spec.name: p.switches for p in options})
            if self.check_conflicts and conflict:
                self.fatal.append(f"conf: {where}: {conflict}")
            tiers.append(options)
        return tuple(tiers)

    def _unknown_keys(self, entry: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
        """Report keys that are not known."""
        for key in entry:
            if key not in known:
                self.problems.append(f'conf: {where}: unknown key "{key}"{did_you_mean(str(key), known)}')

    def _plugin(self, entry: object, dialect: str, where: str) -> PluginOption | None:
        """Return a plugin with its switches and arguments, or None if it is unknown."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            self.problems.append(f"conf: {where}: found {entry!r}, wanted a mapping with the plugin's name")
            return None
        name = entry["name"]
        try:
            spec = self.registry.plugin(dialect, name)
        except PolicyError as error:  # an installed plugin that cannot be imported
            self.problems += [f"conf: {where}: {problem}" for problem in error.problems]
            return None
        if spec is None:
            reason = self.registry.why_missing(dialect, name)
            # A name that is close to a known one is a misspelling. Any other is likely a user's own plugin that was not
            # loaded.
            hint = did_you_mean(name, self.registry.plugins(dialect))
            where_else = "" if hint.endswith("?") else "; is it in --plugins-dir?"
            unknown = f'unknown plugin "{name}"{hint}{where_else}'
            self.problems.append(f"conf: {where}: {reason or unknown}")
            return None
        defaults = self.language.switches
        # Where no file was loaded, as in Volcano's own tests, a switch that is not written is off.
        switches = {stem: self.unset and default for stem, default in defaults.items()}
        for key, value in entry.items():
            if key in ("name", "arguments"):
                continue
            stem = self.switch_of.get(str(key).lower())
            if stem is None:
                known = ["name", "arguments", *(f"enable{s}" for s in defaults)]
                self.problems.append(f'conf: {where} ({name}): unknown switch "{key}"{did_you_mean(str(key), known)}')
            elif value is None:
                continue  # as if it were not written
            elif not isinstance(value, bool):
                self.problems.append(f"conf: {where} ({name}): {key}: found {value!r}, wanted true or false")
            else:
                switches[stem] = value
        given = entry.get("arguments") or {}
        if not isinstance(given, Mapping):
            self.problems.append(f"conf: {where} ({name}): arguments: found {given!r}, wanted a mapping")
            given = {}
        arguments, problems = read_arguments(spec.arguments, given, f"conf: {where} ({name})")
        self.problems += problems
        usage, problems = _usage_of(spec, arguments)
        # All arguments fall back to their defaults: some valid ones together with defaults may be refused again.
        if refused := [f"conf: {where} ({name}): {problem}" for problem in (*spec.problems(arguments), *problems)]:
            self.problems, arguments = self.problems + refused, {}
            usage, _ = _usage_of(spec, arguments)
        # Set last, because these are switches, and not arguments that a conf may give.
        arguments |= {
            name: switches[stem] for stem in self.language.features if (name := stem.lower()) in spec.arguments
        }
        return PluginOption(spec, switches, arguments, usage)


def _usage_of(spec: PluginSpec, arguments: Mapping[str, object]) -> tuple[tuple[UsageWindow, ...], list[str]]:
    """Return the usage that is to be kept for a plugin, and sentences about what is wrong with it. If something is
    wrong, no usage is returned."""
    try:
        windows = tuple(spec.usage_windows(arguments))
        given = "".join(f"{name}={value!r:.40}, " for name, value in arguments.items())
        problems = [f"{given}{window.problem}" for window in windows if window.problem]
        if len(windows) > WINDOWS_MAX:
            # Each window costs memory for every label value, whether a hook reads it or not.
            problems.append(f"keeps_usage: found {len(windows)} windows, wanted {WINDOWS_MAX} at most")
    except Exception as error:
        return (), [f"keeps_usage cannot be asked: {type(error).__name__}: {error}"]
    return () if problems else windows, problems
