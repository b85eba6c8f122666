"""The plugins of one session, and all questions that are asked of them.

Tiers and switches are resolved once per policy (``Wiring``). A question is then a loop over functions. If a plugin does
something wrong while it is asked, that becomes a ``PluginFault`` that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from inspect import ismethod, unwrap
from traceback import walk_tb
from types import CodeType
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from pumice.framework.cycle.observer import Observer, unobserved
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.framework.plugin.errors import HookFunction, PluginError, PluginFault, WrongAnswer, problem_of
from pumice.framework.plugin.point import AnyForms, MultiFormQuestion, Point, Question, Reads
from pumice.framework.plugin.policy_file import Policy
from pumice.framework.plugin.resolution import Reading, Unused, Wire, Wiring

A = ParamSpec("A")
C = TypeVar("C")
V = TypeVar("V")
#: What can be asked of hooks: a point by itself, or one with adapters and a combinator.
Askable = Question | AnyForms


class Hook(NamedTuple):
    """One function of one plugin at one point. ``reads``: None for the default. ``several``: answers for several
    classes, or None. ``for_equals`` and ``for_equal_tasks``: as in ``Wire``."""

    plugin: str
    point: Question
    form: str
    reads: Reads | None
    call: HookFunction
    several: HookFunction | None = None
    for_equals: bool = False
    for_equal_tasks: bool = False

    def answers(self, question: AnyForms) -> HookFunction:
        """Return what to call for a question, which may be asked in another form than the hook's."""
        return question.adapted(self.form, self.call, self.several)

    @property
    def calls(self) -> tuple[Callable[..., object], ...]:
        """The function at the point, and the one for several classes if there is one."""
        return (self.call,) if self.several is None else (self.call, self.several)


class At(Protocol):
    """Returns hooks at some points, bound (``Hook``) or not (``Wire``)."""

    def __call__(self, *points: Question) -> Sequence[Hook | Wire]: ...


class SessionOfHooks(Protocol):
    """What hooks need of their session. Plugins get all of it."""

    @property
    def memo(self) -> Memo: ...


class Hooks:
    """The plugins of a session, and the hooks of those that are open."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._ssn: SessionOfHooks  # from ``open`` on
        # Positions and not names: a plugin that is listed twice has two instances with arguments of their own.
        self._opened: dict[int, object] = {}  # by position in the policy
        self._added: dict[tuple[int, Question], list[Hook]] = {}
        self._opening: int | None = None
        self._tiers: dict[Question, list[list[Hook]]] = {}
        self._calls: dict[Askable, list[list[Callable[..., object]]]] = {}
        self._wiring: Wiring | None = None
        self._unused: dict[int, Unused] = {}
        self._inverses: dict[Question, list[Callable[..., object]]] = {}
        self._forms: dict[Question, frozenset[str]] = {}  # as far as plugins are open

    # -- plugins ------------------------------------------------------------------------------------------------------

    def open(self, ssn: SessionOfHooks, positions: Iterable[int], observe: Observer = unobserved) -> None:
        """Open the plugins at some positions of the policy; others are opened when they are first asked. ``observe``:
        called before each, and at the end. Raises: PluginFault."""
        self._ssn = ssn
        for position in positions:
            observe(f"open {self._policy.options[position].spec.name}")
            self._open(position)
        observe("opened")

    def _open(self, position: int) -> object:
        """Return the plugin at a position of the policy, opened if it is not. Raises: PluginFault."""
        # Asked for again at each question, and opened once.
        instance = self._opened.get(position)
        if instance is not None:
            return instance
        option, self._opening = self._policy.options[position], position
        try:
            instance = option.spec.build(self._ssn, option.arguments)
            if hasattr(instance, "on_session_open"):
                instance.on_session_open(self._ssn)
        except Exception as error:
            own = _file_in(option.spec.target.__module__, error)
            raise _fault(option.spec.name, "opening", "", error, own) from error
        finally:
            # Also after an error: whatever is registered next must not be taken for a hook of this plugin.
            self._opening = None
        self._opened[position] = instance
        # What an instance leaves unused depends on its arguments and on the cluster, so it is known only now, and
        # changes the wiring.
        if (unused := Unused.of(instance)) is not None:
            self._unused[position], self._wiring = unused, None
        # A plugin may have added hooks, so what was resolved before may be incomplete.
        self._forms.clear()
        return instance

    @property
    def is_opening(self) -> bool:
        """True while a plugin is being opened."""
        return self._opening is not None

    @property
    def opened(self) -> list[tuple[str, object]]:
        """Return all open plugins with their names, in the order of the policy."""
        return [(self._policy.options[i].spec.name, self._opened[i]) for i in sorted(self._opened)]

    def instance(self, position: int) -> object:
        """Return the plugin at a position of the policy, or None if it is not open."""
        return self._opened.get(position)

    def plugin(self, name: str) -> object:
        """Return the plugin of a name, or None. If it is listed twice, the last one, which is the one that answers."""
        at = [i for i, option in enumerate(self._policy.options) if option.spec.name == name]
        return self._open(at[-1]) if at else None

    def add(self, point: Question, hook: Callable[..., object], reads: Reads | None = None) -> None:
        """Register a hook while a plugin's ``on_session_open`` runs (Volcano's life cycle).

        Raises: PluginError at any other time, or if the parameters of the hook have no known form.
        """
        if self._opening is None:
            raise PluginError(f"hook at point {point.name} added outside of on_session_open")
        name = self._policy.options[self._opening].spec.name
        # Checked at registration, where the line of the author's mistake is on the stack.
        form = point.form_of(hook, f"plugin {name}, point {point.name}", skip=int(ismethod(hook)))
        self._added.setdefault((self._opening, point), []).append(Hook(name, point, form, reads, hook))
        self._forms.clear()

    # -- what they answer ---------------------------------------------------------------------------------------------

    def tiers(self, point: Question) -> list[list[Hook]]:
        """Return the hooks at a point by tier, without plugins that are switched off there and without empty tiers."""
        found = self._tiers.get(point)
        if found is None:
            found = self._tiers[point] = self._find_tiers(point)
        return found

    def _find_tiers(self, point: Question) -> list[list[Hook]]:
        """Compute ``tiers``."""
        # Hooks that plugins add when they open differ from session to session, so wiring that is shared does not know
        # them.
        if not self._added:
            self._open_for((point,))
            return [[self._hook(wire) for wire in tier] for tier in self.wiring.tiers(point)]
        on = self._policy.plugins_at(point)
        tiers = ([hook for plugin in plugins for hook in self._of(plugin, point)] for plugins in on)
        return [tier for tier in tiers if tier]

    def _open_for(self, points: tuple[Question, ...]) -> None:
        """Open the plugins with hooks at some points."""
        # Opened late: a plugin that no action asks in a session costs nothing.
        if len(self._opened) < len(self._policy.options):
            for point in points:
                for plugins in self._policy.plugins_at(point):
                    for position in plugins:
                        self._open(position)

    @property
    def wiring(self) -> Wiring:
        """The hooks of the plugins that are open."""
        if self._wiring is None:
            unused = self._unused.copy()
            # Kept across sessions: plugins leave the same points unused as long as their arguments are equal.
            self._wiring = self._ssn.memo.get(("wiring", *unused.items()), (), lambda: Wiring(self._policy, unused))
        return self._wiring

    def _hook(self, wire: Wire) -> Hook:
        """Return a hook of this session's instance."""
        # Wires are shared by sessions and instances are not, so the two are joined here.
        instance = self._opened[wire.position]
        several = getattr(instance, wire.several) if wire.several else None
        shared = wire.for_equals, wire.for_equal_tasks
        return Hook(wire.plugin, wire.point, wire.form, wire.reads, wire.call_of(instance), several, *shared)

    def _of(self, plugin: int, point: Question) -> list[Hook]:
        """Return the hooks of the plugin at a position of the policy: those of its class, then those that it added."""
        self._open(plugin)
        return [*map(self._hook, self.wiring.of(plugin, point)), *self._added.get((plugin, point), ())]

    def by_plugin(self, point: Question, on_at: Question | None = None) -> Iterator[list[Hook]]:
        """Return the hooks at a point, one list per plugin that is on there (``on_at``: at another point)."""
        # A reduction belongs to its map, so both follow the switch of the latter. Source: Volcano NodeOrderReduceFn.
        on = self._policy.plugins_at(on_at or point)
        return (self._of(plugin, point) for plugins in on for plugin in plugins)

    def notified_by_inverse(self, point: Question) -> list[Callable[..., object]]:
        """Return the hooks of plugins with plain Python state, which a rollback must call."""
        found = self._inverses.get(point)
        if found is None:
            # Plain Python state is unknown to the journal. Only the plugin itself can undo what it counted.
            found = self._inverses[point] = [
                hook.call for plugin in self._policy.python_plugins for hook in self._of(plugin, point)
            ]
        return found

    def has(self, point: Question) -> bool:
        """Return True if a plugin answers at the point."""
        return bool(self.forms(point))

    def forms(self, point: Question) -> frozenset[str]:
        """Return the forms of the hooks at a point."""
        found = self._forms.get(point)
        if found is None:
            found = self._forms[point] = self._find_forms(point)
        return found

    def _find_forms(self, point: Question) -> frozenset[str]:
        """Compute ``forms``."""
        return self.known(("forms", point), (point,), lambda at: frozenset(each.form for each in at(point)))

    def known(self, question: Hashable, points: tuple[Question, ...], find: Callable[[At], V]) -> V:
        """Return what follows from which hooks are at some points, whatever they answer; computed once per policy.
        ``find`` is given a function that returns hooks at points, bound or not (``bound``)."""
        if self._added:
            return find(self.at)
        self._open_for(points)
        return self.wiring.known(question, find)

    def reading(self, *points: Question, rows: bool = False) -> Reading:
        """Return what hooks at some points read, as in ``Reading.of``."""
        return self.known(("reading", points, rows), points, lambda at: Reading.of(at(*points), rows=rows))

    def bound(self, hook: Hook | Wire) -> Hook:
        """Return a hook bound to this session's plugin."""
        return hook if isinstance(hook, Hook) else self._hook(hook)

    @overload
    def ask(self, question: Point[A, V, C], /, *args: A.args, **kwargs: A.kwargs) -> C: ...
    @overload
    def ask(self, question: MultiFormQuestion[A, C], /, *args: A.args, **kwargs: A.kwargs) -> C: ...
    def ask(self, question: Askable, /, *args: object, **kwargs: object) -> object:
        """Ask all plugins at a point, and combine their answers as the point says.

        Raises: PluginFault if a plugin raises, or answers something that the point cannot use.
        """
        calls = self._calls.get(question)
        if calls is None:
            calls = self._calls[question] = self._calls_of(question)
        # The fault is sought only after an error, so that a question without one costs no more than its calls.
        try:
            return question.combinator(calls, *args)
        except PluginFault:
            raise
        except Exception as error:
            raise self.blame(error, question) from error

    def each_answer(self, question: AnyForms, *args: object) -> list[tuple[str, object]]:
        """Return the answer of each plugin by itself, with its name, in the order of the policy. Raises:
        PluginFault."""
        hooks = [hook for hook in self.at(*question.points) if hook.form in question.forms]
        try:
            return [(hook.plugin, hook.answers(question)(*args)) for hook in hooks]
        except Exception as error:
            raise self.blame(error, question) from error

    def with_plugins(self, question: AnyForms, answers: Iterable[tuple[int, V]]) -> list[tuple[str, V]]:
        """Return answers to a question with the names of plugins in place of the numbers of hooks."""
        forms = question.forms
        names = self.known(
            ("plugins", question),
            question.points,
            lambda at: [hook.plugin for hook in at(*question.points) if hook.form in forms],
        )
        return [(names[number], answer) for number, answer in answers]

    def first_to_answer(self, question: AnyForms, *args: object) -> str:
        """Return the plugin with the first answer that is not None, or "". Raises: PluginFault."""
        return next((plugin for plugin, answer in self.each_answer(question, *args) if answer is not None), "")

    def ask_one(self, hook: Hook, *args: object) -> object:
        """Ask one hook. Raises: PluginFault."""
        try:
            return hook.call(*args)
        except Exception as error:
            raise self.blame(error, hook.point) from error

    def ask_alone(self, hook: Hook, combinator: Callable[..., V], *args: object) -> V:
        """Ask one hook, and return what a combinator makes of its answer. Raises: PluginFault."""
        try:
            return combinator(((hook.call,),), *args)
        except Exception as error:
            raise self.blame(error, hook.point) from error

    def guard(self, plugin: str, what: str, call: Callable[A, V], *args: A.args, **kwargs: A.kwargs) -> V:
        """Call a function of a plugin outside of all points. Raises: PluginFault."""
        try:
            return call(*args, **kwargs)
        except Exception as error:
            raise _fault(plugin, what, _name(call), error, _file_of(call)) from error

    def _calls_of(self, question: Askable) -> list[list[Callable[..., object]]]:
        """Return what to call for a question, by tier."""
        points = (question,) if isinstance(question, Question) else question.points
        # Hooks that were added have no wire, so their calls are found for this session only.
        if self._added:
            tiers = [tier for point in points for tier in self.tiers(point)]
            if isinstance(question, Question):
                return [[hook.call for hook in tier] for tier in tiers]
            return [[hook.answers(question) for hook in tier if hook.form in question.forms] for tier in tiers]
        self._open_for(points)
        opened, found = self._opened, []
        for tier in self.wiring.calls(question):
            calls: list[Callable[..., object]] = []
            # The calls are bound once per session and question. Some questions are asked for each task of a cycle.
            for position, attribute, adapter in tier:
                instance = opened[position]
                call = cast(HookFunction, getattr(instance, attribute) if attribute else instance)
                calls.append(call if adapter is None else adapter(call))
            found.append(calls)
        return found

    def answers(self, question: Askable) -> bool:
        """Return True if a hook would be asked."""
        calls = self._calls.get(question)
        if calls is None:
            calls = self._calls[question] = self._calls_of(question)
        return any(calls)

    @property
    def with_python_state(self) -> set[str]:
        """The plugins with plain Python state."""
        return {option.spec.name for option in self._policy.options if option.spec.keeps == "python"}

    def keeps_state(self, world: World, plugin: str) -> bool:
        """Return True if a plugin has numbers of its own, as columns or as plain Python state."""
        return plugin in self.with_python_state or bool(world.columns_of(plugin))

    # -- what their answers rest on -----------------------------------------------------------------------------------

    def at(self, *points: Question) -> list[Hook]:
        """Return all hooks at some points."""
        return [hook for point in points for tier in self.tiers(point) for hook in tier]

    # -- faults -------------------------------------------------------------------------------------------------------

    def fault_of(self, call: Callable[..., object], error: Exception, *points: Question) -> PluginFault:
        """Return the fault for a result of one of the functions at some points, which failed when it was used."""
        hook = next(hook for hook in self.at(*points) if _is_or_wraps(call, hook.call))
        return _fault(hook.plugin, hook.point.name, _name(hook.call), error, _file_of(hook.call))

    def blame(self, error: Exception, question: Askable) -> Exception:
        """Return the PluginFault for an error, or the error itself if no plugin caused it."""
        points = question.points if isinstance(question, MultiFormQuestion) else (question,)
        # Combinators do not know the plugin of a hook, which costs nothing as long as no plugin fails.
        hooks = self.at(*points)
        calls = [(hook, call) for hook in hooks for call in hook.calls]
        if isinstance(error, WrongAnswer):
            culprit = next((each for each in calls if _code(each[1]) is _code(error.hook)), None)
            if culprit is None:  # asked through an adapter, which has no name of its own
                culprit = next((each for each in calls if _wraps(error.hook, each[1])), None)
        else:
            # By code, because bound methods are new objects at each access.
            codes = {frame.f_code for frame, _ in walk_tb(error.__traceback__)}
            # The outermost hook on the stack, because a hook may call other functions of its own plugin.
            culprit = next((each for each in calls if _code(each[1]) in codes), None)
            for frame, _ in reversed(list(walk_tb(error.__traceback__))) if culprit is None else ():
                # A hook's answer could not be used. Combinators and adapters call the one that they ask ``hook``.
                asked = frame.f_locals.get("hook")
                culprit = culprit or next((each for each in calls if asked and _is_or_wraps(asked, each[1])), None)
        if culprit is None:
            return error
        hook, call = culprit
        return _fault(hook.plugin, hook.point.name, _name(call), error, _file_of(call))


def _function(call: Callable[..., object]) -> object:
    """Return the function behind a method, or behind a function with its arguments filled in."""
    # A plugin that is a function is a ``partial``, and a decorated hook is wrapped.
    call = getattr(call, "func", call)
    return unwrap(getattr(call, "__func__", call))


def _code(call: Callable[..., object]) -> CodeType | None:
    """Return the code of what was called, by which it is recognized on a stack; None if it has none."""
    found: CodeType | None = getattr(_function(call), "__code__", None)
    return found


def _name(call: Callable[..., object]) -> str:
    """Return the name of what was called."""
    return str(getattr(_function(call), "__qualname__", "a hook"))


def _wraps(adapter: Callable[..., object], call: Callable[..., object]) -> bool:
    """Return True if an adapter closes over a call."""
    cells = getattr(adapter, "__closure__", None) or ()
    return any(cell.cell_contents is call or cell.cell_contents == call for cell in cells)


def _is_or_wraps(asked: HookFunction, call: Callable[..., object]) -> bool:
    """Return True if what was asked is the call, or an adapter of it."""
    return asked == call or _wraps(asked, call)


def _file_of(call: Callable[..., object]) -> tuple[str, int] | None:
    """Return where a function is defined, None if it has no code."""
    code = _code(call)
    return None if code is None else (code.co_filename, code.co_firstlineno)


def _file_in(module: str, error: Exception) -> tuple[str, int] | None:
    """Return the innermost place of a traceback that is in the module of a plugin, None if there is none."""
    # What a dataclass generates runs in the plugin's module too, and has no file.
    return next(
        (
            (frame.f_code.co_filename, line)
            for frame, line in reversed(list(walk_tb(error.__traceback__)))
            if frame.f_globals.get("__name__") == module and not frame.f_code.co_filename.startswith("<")
        ),
        None,
    )


def _fault(plugin: str, point: str, hook: str, error: Exception, own: tuple[str, int] | None) -> PluginFault:
    """Return a fault with the place that raised: the last frame in the plugin's ``own`` file, or where the hook is
    defined."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    # The frame that raised is often in Pumice or NumPy. An author needs the line of the plugin's own file that led
    # there.
    file, first = own or (frames[-1] if frames else ("?", 0))
    line = next((number for name, number in reversed(frames) if name == file), first)
    problem = str(error) if isinstance(error, WrongAnswer) else problem_of(error)
    return PluginFault(plugin, point, hook or "__init__", f"{file}:{line}", problem)
