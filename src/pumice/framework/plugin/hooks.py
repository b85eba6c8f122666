"""The plugins of one session, and every question that is put to them.

Tiers and switches are resolved once a policy (``wiring``); a question is then a loop over functions. What a plugin does
wrong while it is asked becomes a ``PluginFault`` that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from inspect import ismethod, unwrap
from traceback import walk_tb
from types import CodeType
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

from pumice.columns.rows import ClassRows, NodeRows
from pumice.framework.cycle.observer import Observer, unobserved
from pumice.framework.cycle.world import World
from pumice.framework.plugin.errors import PluginError, PluginFault, WrongAnswer, problem_of
from pumice.framework.plugin.point import Asked, Point, Question, Reads
from pumice.framework.plugin.policy_file import Policy
from pumice.framework.plugin.resolution import Reading, Unused, Wire, Wiring

A = ParamSpec("A")
C = TypeVar("C")
V = TypeVar("V")
#: Hooks at some points, bound (``Hook``) or not (``Wire``).
At = Callable[..., list[Any]]
#: What may be put to hooks: a point by itself, or with its combinator.
Askable = Question | Asked[Any, Any]


class Hook(NamedTuple):
    """One function of one plugin at one point. ``reads``: None as by default. ``several``: says the same of several
    classes; None: there is no such. ``for_equals``: its answer about one job or task holds for equal ones."""

    plugin: str
    point: Question
    form: str
    reads: Reads | None
    call: Callable[..., Any]
    several: Callable[[ClassRows, NodeRows], Any] | None = None
    for_equals: bool = False

    def answers(self, question: Asked[Any, Any]) -> Callable[..., Any]:
        """What to call for a question that is put in the form that whoever asks has."""
        return question.adapted(self.form, self.call, self.several)

    @property
    def calls(self) -> tuple[Callable[..., Any], ...]:
        """Its functions: the one at the point, and what it names beside for several classes."""
        return (self.call,) if self.several is None else (self.call, self.several)


class Hooks:
    """``opened``: plugins by their position in the policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._ssn: Any = None
        self._opened: dict[int, object] = {}
        self._added: dict[tuple[int, Question], list[Hook]] = {}
        self._opening: int | None = None
        self._tiers: dict[Question, list[list[Hook]]] = {}
        self._calls: dict[Askable, list[list[Callable[..., object]]]] = {}
        self._wiring: Wiring | None = None
        self._unused: dict[int, Unused] = {}
        self._inverses: dict[Question, list[Callable[..., object]]] = {}
        self._forms: dict[Question, frozenset[str]] = {}  # as far as plugins are open

    # -- plugins ------------------------------------------------------------------------------------------------------

    def open(self, ssn: object, positions: Iterable[int], observe: Observer = unobserved) -> None:
        """Build the plugins at some positions of the policy; others are when they are asked. ``observe`` is told before
        each, and when it is over. Raises: PluginFault."""
        self._ssn = ssn
        for position in positions:
            observe(f"open {self._policy.options[position].spec.name}")
            self._open(position)
        observe("opened")

    def _open(self, position: int) -> object:
        instance = self._opened.get(position)
        if instance is not None:
            return instance
        option, self._opening = self._policy.options[position], position
        try:
            instance = option.spec.build(self._ssn, option.arguments)
            if hasattr(instance, "on_session_open"):
                instance.on_session_open(self._ssn)
        except Exception as error:
            raise _fault(option.spec.name, "opening", "", error) from error
        finally:
            self._opening = None
        self._opened[position] = instance
        if (unused := Unused.of(instance)) is not None:
            self._unused[position], self._wiring = unused, None
        self._forms.clear()
        return instance

    @property
    def is_opening(self) -> bool:
        """Whether a plugin is being opened right now."""
        return self._opening is not None

    @property
    def opened(self) -> list[tuple[str, object]]:
        """Every plugin that is open with its name, in the order of the policy."""
        return [(self._policy.options[i].spec.name, self._opened[i]) for i in sorted(self._opened)]

    def instance(self, position: int) -> Any:
        """The plugin at a position of the policy, None where it is not open."""
        return self._opened.get(position)

    def plugin(self, name: str) -> Any:
        """The plugin of a name, None without one; of two the one that answers, which is the last."""
        at = [i for i, option in enumerate(self._policy.options) if option.spec.name == name]
        return self._open(at[-1]) if at else None

    def add(self, point: Question, hook: Callable[..., object], reads: Reads | None = None) -> None:
        """Register a hook while a plugin's ``on_session_open`` runs (Volcano's life cycle).

        Raises: PluginError outside of it, or when the hook's parameters have no known form.
        """
        if self._opening is None:
            raise PluginError(f"hook at point {point.name} added outside of on_session_open")
        name = self._policy.options[self._opening].spec.name
        form = point.form_of(hook, f"plugin {name}, point {point.name}", skip=int(ismethod(hook)))
        self._added.setdefault((self._opening, point), []).append(Hook(name, point, form, reads, hook))
        self._forms.clear()

    # -- what they answer ---------------------------------------------------------------------------------------------

    def tiers(self, point: Question) -> list[list[Hook]]:
        """Hooks at a point by tier; plugins that are switched off there, and empty tiers, are left out."""
        found = self._tiers.get(point)
        if found is None:
            found = self._tiers[point] = self._find_tiers(point)
        return found

    def _find_tiers(self, point: Question) -> list[list[Hook]]:
        if not self._added:
            self._open_for((point,))
            return [[self._hook(wire) for wire in tier] for tier in self.wiring.tiers(point)]
        on = self._policy.plugins_at(point)
        tiers = ([hook for plugin in plugins for hook in self._of(plugin, point)] for plugins in on)
        return [tier for tier in tiers if tier]

    def _open_for(self, points: tuple[Question, ...]) -> None:
        """Plugins with hooks at some points are open from now on."""
        if len(self._opened) < len(self._policy.options):
            for point in points:
                for plugins in self._policy.plugins_at(point):
                    for position in plugins:
                        self._open(position)

    @property
    def wiring(self) -> Wiring:
        """Who answers where, of the plugins that are open."""
        if self._wiring is None:
            unused = self._unused.copy()
            self._wiring = self._ssn.memo.get(("wiring", *unused.items()), (), lambda: Wiring(self._policy, unused))
        return self._wiring

    def _hook(self, wire: Wire) -> Hook:
        instance = self._opened[wire.position]
        several = getattr(instance, wire.several) if wire.several else None
        return Hook(wire.plugin, wire.point, wire.form, wire.reads, wire.call_of(instance), several, wire.for_equals)

    def _of(self, plugin: int, point: Question) -> list[Hook]:
        """Hooks at a point of the plugin at a position of the policy: those of its class, then those it added when the
        session opened."""
        self._open(plugin)
        return [*map(self._hook, self.wiring.of(plugin, point)), *self._added.get((plugin, point), ())]

    def by_plugin(self, point: Question, on_at: Question | None = None) -> Iterator[list[Hook]]:
        """The same, one list a plugin that is on there (``on_at``: at another point)."""
        on = self._policy.plugins_at(on_at or point)
        return (self._of(plugin, point) for plugins in on for plugin in plugins)

    def told_by_inverse(self, point: Question) -> list[Callable[..., object]]:
        """Hooks of plugins with plain Python state, which a rollback must tell."""
        found = self._inverses.get(point)
        if found is None:
            found = self._inverses[point] = [
                hook.call for plugin in self._policy.python_plugins for hook in self._of(plugin, point)
            ]
        return found

    def has(self, point: Question) -> bool:
        """Whether any plugin answers at the point."""
        return bool(self.forms(point))

    def forms(self, point: Question) -> frozenset[str]:
        """The forms that the hooks at a point are written in."""
        found = self._forms.get(point)
        if found is None:
            found = self._forms[point] = self._find_forms(point)
        return found

    def _find_forms(self, point: Question) -> frozenset[str]:
        return self.known(("forms", point), (point,), lambda at: frozenset(each.form for each in at(point)))

    def known(self, question: Hashable, points: tuple[Question, ...], find: Callable[[At], V]) -> V:
        """What follows from who answers at some points, whatever they answer: found out once a policy. ``find`` is
        given the way to ask for hooks at points, bound or not (``bound``)."""
        if self._added:
            return find(self.at)
        self._open_for(points)
        return self.wiring.known(question, find)

    def reading(self, *points: Question, rows: bool = False) -> Reading:
        """What hooks at some points read, as ``Reading.of`` says."""
        return self.known(("reading", points, rows), points, lambda at: Reading.of(at(*points), rows=rows))

    def bound(self, hook: Hook | Wire) -> Hook:
        """A hook of this session's plugin."""
        return hook if isinstance(hook, Hook) else self._hook(hook)

    @overload
    def ask(self, question: Point[A, Any, C], /, *args: A.args, **kwargs: A.kwargs) -> C: ...
    @overload
    def ask(self, question: Asked[A, C], /, *args: A.args, **kwargs: A.kwargs) -> C: ...
    def ask(self, question: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Put a question to every plugin at its point and combine the answers as the point says.

        Raises: PluginFault when a plugin raises, or answers what the point has no use for.
        """
        calls = self._calls.get(question)
        if calls is None:
            calls = self._calls[question] = self._calls_of(question)
        try:
            return question.combinator(calls, *args)
        except PluginFault:
            raise
        except Exception as error:
            raise self.blame(error, question) from error

    def each_answer(self, question: Asked[Any, Any], *args: Any) -> list[tuple[str, Any]]:
        """What every plugin answers by itself, in the order of the policy, with its name. Raises: PluginFault."""
        hooks = [hook for hook in self.at(*question.points) if hook.form in question.forms]
        try:
            return [(hook.plugin, hook.answers(question)(*args)) for hook in hooks]
        except Exception as error:
            raise self.blame(error, question) from error

    def with_plugins(self, question: Asked[Any, Any], answers: Iterable[tuple[int, V]]) -> list[tuple[str, V]]:
        """Answers to a question with the plugins that gave them, in the place of the hooks' numbers."""
        forms = question.forms
        names = self.known(
            ("plugins", question),
            question.points,
            lambda at: [hook.plugin for hook in at(*question.points) if hook.form in forms],
        )
        return [(names[number], answer) for number, answer in answers]

    def first_to_answer(self, question: Asked[Any, Any], *args: Any) -> str:
        """The plugin whose answer is the first that is not None, empty without one. Raises: PluginFault."""
        return next((plugin for plugin, answer in self.each_answer(question, *args) if answer is not None), "")

    def ask_one(self, hook: Hook, *args: Any) -> Any:
        """Put a question to one hook. Raises: PluginFault."""
        try:
            return hook.call(*args)
        except Exception as error:
            raise self.blame(error, hook.point) from error

    def guard(self, plugin: str, what: str, call: Callable[..., Any], *args: Any) -> Any:
        """Call a plugin outside of every point. Raises: PluginFault."""
        try:
            return call(*args)
        except Exception as error:
            raise _fault(plugin, what, _name(call), error, _code(call)) from error

    def _calls_of(self, question: Askable) -> list[list[Callable[..., object]]]:
        points = (question,) if isinstance(question, Question) else question.points
        if self._added:
            tiers = [tier for point in points for tier in self.tiers(point)]
            if isinstance(question, Question):
                return [[hook.call for hook in tier] for tier in tiers]
            return [[hook.answers(question) for hook in tier if hook.form in question.forms] for tier in tiers]
        self._open_for(points)
        opened, found = self._opened, []
        for tier in self.wiring.calls(question):
            calls: list[Callable[..., object]] = []
            for position, attribute, adapter in tier:
                instance: Any = opened[position]
                call = getattr(instance, attribute) if attribute else instance
                calls.append(call if adapter is None else adapter(call))
            found.append(calls)
        return found

    def answers(self, question: Askable) -> bool:
        """Whether any hook would be asked."""
        calls = self._calls.get(question)
        if calls is None:
            calls = self._calls[question] = self._calls_of(question)
        return any(calls)

    @property
    def with_python_state(self) -> set[str]:
        """Plugins with plain Python state."""
        return {option.spec.name for option in self._policy.options if option.spec.keeps == "python"}

    def keeps_state(self, world: World, plugin: str) -> bool:
        """Whether a plugin has numbers of its own, as columns or as plain Python state."""
        return plugin in self.with_python_state or bool(world.columns_of(plugin))

    # -- what their answers rest on -----------------------------------------------------------------------------------

    def at(self, *points: Question) -> list[Hook]:
        """Every hook at some points."""
        return [hook for point in points for tier in self.tiers(point) for hook in tier]

    # -- faults -------------------------------------------------------------------------------------------------------

    def fault_of(self, call: Callable[..., Any], error: Exception, *points: Question) -> PluginFault:
        """The error of what one of the functions at some points gave, as it was used."""
        hook = next(hook for hook in self.at(*points) if _is_or_wraps(call, hook.call))
        return _fault(hook.plugin, hook.point.name, _name(hook.call), error, _code(hook.call))

    def blame(self, error: Exception, question: Askable) -> Exception:
        """Who did it, as a PluginFault; the error itself where no plugin had a part in it."""
        points = question.points if isinstance(question, Asked) else (question,)
        hooks = self.at(*points)
        calls = [(hook, call) for hook in hooks for call in hook.calls]
        if isinstance(error, WrongAnswer):
            culprit = next((each for each in calls if _code(each[1]) is _code(error.hook)), None)
            if culprit is None:  # asked through an adapter, which has no name of its own
                culprit = next((each for each in calls if _wraps(error.hook, each[1])), None)
        else:
            codes = {frame.f_code for frame, _ in walk_tb(error.__traceback__)}
            culprit = next((each for each in calls if _code(each[1]) in codes), None)
            for frame, _ in reversed(list(walk_tb(error.__traceback__))) if culprit is None else ():
                # What a hook gave was of no use: combinators and adapters call the one that they ask ``hook``.
                asked = frame.f_locals.get("hook")
                culprit = culprit or next((each for each in calls if asked and _is_or_wraps(asked, each[1])), None)
        if culprit is None:
            return error
        hook, call = culprit
        return _fault(hook.plugin, hook.point.name, _name(call), error, _code(call))


def _function(call: Callable[..., object]) -> object:
    """The function behind a method or a plugin that is one function with its arguments filled in."""
    call = getattr(call, "func", call)
    return unwrap(getattr(call, "__func__", call))


def _code(call: Callable[..., object]) -> CodeType | None:
    found: CodeType | None = getattr(_function(call), "__code__", None)
    return found


def _name(call: Callable[..., object]) -> str:
    return str(getattr(_function(call), "__qualname__", "a hook"))


def _wraps(adapter: Callable[..., object], call: Callable[..., object]) -> bool:
    cells = getattr(adapter, "__closure__", None) or ()
    return any(cell.cell_contents is call or cell.cell_contents == call for cell in cells)


def _is_or_wraps(asked: Any, call: Callable[..., object]) -> bool:
    return asked == call or _wraps(asked, call)


def _fault(plugin: str, point: str, hook: str, error: Exception, code: CodeType | None = None) -> PluginFault:
    """With the place that raised: the last frame of the plugin's own file, else where the hook is written."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = code.co_filename if code is not None else (frames[-1][0] if frames else "?")
    line = next((number for file, number in reversed(frames) if file == own), code.co_firstlineno if code else 0)
    problem = str(error) if isinstance(error, WrongAnswer) else problem_of(error)
    return PluginFault(plugin, point, hook or "__init__", f"{own}:{line}", problem)
