"""Extension points: a question, the forms of a hook that answers it, and how answers are combined.

A point is the decorator that puts a function at it. Its type says what a hook takes and answers, so that mypy rejects a
wrong hook; the decorator also reads the annotations, so that a wrong hook fails when it is loaded. The form of a hook
follows from what it takes, and is a contract: a hook that takes ``TaskClass`` cannot see the single task, so its answer
is kept for the class; one that takes ``Task`` is asked each time; one that takes rows answers for many at once.

How long an answer holds depends on what it rests on: the rows that were asked about, the class, and every column of the
plugin. ``reads=`` on the decorator replaces that where it is too little (a hook that reads the clock) or too much. A
hook about a class may name a method with ``several=``, which takes ClassRows in place of TaskClass and answers for
several classes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from msgspec import Struct

from pumice.framework.plugin.errors import HookFunction, PluginError

HOOKS_ATTRIBUTE = "__pumice_hooks__"

#: Words of ``reads=``, in addition to names of columns (``plugin.column``).
ROWS = "rows"  # the rows that were asked about, in every column of their table and of the plugin's on the same axis
NOW = "now"  # the clock
PODS = "pods"  # pods, and where they are: any task's row
QUEUES = "queues"
JOBS = "jobs"
WORDS = (ROWS, NOW, PODS, QUEUES, JOBS)

Reads = tuple[str, ...]
#: Turns a hook in one form into a function that is asked in another.
Adapter = Callable[[HookFunction], HookFunction]


P = TypeVar("P")  # the plugin (self), or the session of a plugin that is one function
A = ParamSpec("A")
B = ParamSpec("B")
R = TypeVar("R")
S = TypeVar("S")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
H = TypeVar("H", bound=HookFunction)


class Key(Protocol):
    """The place of an element in an order. It is compared only with what the same source returns for others, so it says
    nothing about which values it can be compared with."""

    def __lt__(self, other: Any, /) -> Any: ...


class Mark(NamedTuple):
    """What a decorator leaves on a function: its point, its form, what it reads (None: the default), and the name of
    the method that answers for several classes (None: the hook is asked for each)."""

    point: Question
    form: str
    reads: Reads | None
    several: str | None = None


class Question(Struct, frozen=True, eq=False):
    """The part of a point that has no types. ``name``: also the name of the decorator.

    ``asks``: the question, and what each answer means. ``when``: what asks it, and when. ``switch``: stem of the conf
    switch (``JobOrder`` for ``enableJobOrder`` and ``enabledJobOrder``), empty if the hook cannot be switched off.
    ``switches``: one of these must be on. ``forms``: name of the form by what a hook takes, as written. ``tells``: if a
    plugin is listed twice, each instance is notified once; at other points the last instance is asked at both places.
    """

    name: str
    asks: str
    when: str
    combinator: Callable[..., object]
    forms: Mapping[tuple[str, ...], str]
    switch: str = ""
    default_on: bool = True
    switches: tuple[str, ...] = ()
    tells: bool = False

    @property
    def any_switch(self) -> tuple[str, ...]:
        """The switches of which one must be on; empty: always on."""
        return self.switches or ((self.switch,) if self.switch else ())

    def form_of(self, hook: Callable[..., object], what: str, skip: int = 1) -> str:
        """Return the form in which a hook is written. ``what``: how an error calls it. ``skip``: number of leading
        parameters that are not part of the question (``self`` or ``ssn``). Raises: PluginError."""
        found = takes(hook, skip)
        # Compared as text, because annotations are strings under ``from __future__ import annotations``. Resolving them
        # would import what a plugin imports only for types.
        form = self.forms.get(found)
        if form is None:
            known = " or ".join("(" + ", ".join(each) + ")" for each in self.forms)
            raise PluginError(f"{what}: found parameters ({', '.join(found)}), wanted {known}")
        return form

    def mark(self, hook: H, reads: Reads | None, several: str | None) -> H:
        """Put a function at this point, and return it. Raises: PluginError."""
        form = self.form_of(hook, f"hook {hook.__qualname__} at point {self.name}")
        if several is not None and form not in ("class", "class_node"):
            raise PluginError(
                f"hook {hook.__qualname__} at point {self.name}: found several={several!r} at a hook that takes"
                f" ({', '.join(takes(hook))}), wanted one that takes TaskClass and nodes"
            )
        # A word that is misspelt would make an answer rest on too little, and it would be kept for too long. So it is
        # an error when the plugin is loaded.
        wrong = [word for word in reads or () if word not in WORDS and "." not in word]
        if wrong:
            names = ", ".join(WORDS)
            raise PluginError(
                f"hook {hook.__qualname__} at point {self.name}: reads={wrong[0]!r}: wanted one of {names},"
                " or the name of a column, plugin.column"
            )
        # Added to what is there, because one function may answer at several points.
        setattr(hook, HOOKS_ATTRIBUTE, [*getattr(hook, HOOKS_ATTRIBUTE, ()), Mark(self, form, reads, several)])
        return hook

    def decorate(
        self, hook: H | None, *, reads: Reads | None = None, several: str | None = None
    ) -> H | Callable[[H], H]:
        """Decorate a hook, for ``@point`` and ``@point(reads=…)``."""
        # With arguments, Python calls the decorator first and passes the function to what that returns.
        if hook is None:
            return lambda later: self.mark(later, reads, several)
        return self.mark(hook, reads, several)


def takes(hook: Callable[..., object], skip: int = 1) -> tuple[str, ...]:
    """Return the annotations of the positional parameters, as written, without the first ``skip`` of them."""
    # Read from the code object: ``inspect.signature`` is slow, and every hook of a policy is read when a command
    # starts.
    code = hook.__code__
    names = code.co_varnames[: code.co_argcount]
    return tuple(spelled(hook.__annotations__.get(name, "?")) for name in names[skip:])


def spelled(annotation: object) -> str:
    """Return an annotation as it is written, with or without ``from __future__ import annotations`` in the module."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


Once = Callable[Concatenate[P, A], R]


class Point(Question, Generic[A, R, C], frozen=True, eq=False):
    """A question with one form of hook. ``Point[[Job], bool, bool]``: hooks take a Job and answer a bool, and the
    combined answer is a bool."""

    @overload
    def __call__(self, hook: Callable[Concatenate[P, A], R], /) -> Callable[Concatenate[P, A], R]: ...
    @overload
    def __call__(
        self, /, *, reads: Reads
    ) -> Callable[[Callable[Concatenate[P, A], R]], Callable[Concatenate[P, A], R]]: ...
    def __call__(self, hook: HookFunction | None = None, /, *, reads: Reads | None = None) -> object:
        return self.decorate(hook, reads=reads)


class MarksTwoForms(Protocol[A, R, B, S]):
    """What ``@point(reads=…)`` returns: a decorator for a hook of either form, and no other."""

    @overload
    def __call__(self, hook: Callable[Concatenate[P, A], R], /) -> Callable[Concatenate[P, A], R]: ...
    @overload
    def __call__(self, hook: Callable[Concatenate[P, B], S], /) -> Callable[Concatenate[P, B], S]: ...


class TwoForms(Question, Generic[A, R, B, S, C], frozen=True, eq=False):
    """A question with two forms of hook; the combined answer is ``C``."""

    @overload
    def __call__(self, hook: Callable[Concatenate[P, A], R], /) -> Callable[Concatenate[P, A], R]: ...
    @overload
    def __call__(self, hook: Callable[Concatenate[P, B], S], /) -> Callable[Concatenate[P, B], S]: ...
    @overload
    def __call__(self, /, *, reads: Reads) -> MarksTwoForms[A, R, B, S]: ...
    def __call__(self, hook: HookFunction | None = None, /, *, reads: Reads | None = None) -> object:
        return self.decorate(hook, reads=reads)


class MultiFormQuestion(Generic[A, C_co]):
    """A question that is asked of hooks of several forms, or at several points, at once. Each form is adapted to the
    arguments of the question, and a form without an adapter in ``forms`` is not asked. ``of_several``: the question is
    about several classes at once, and goes to the method that a hook names with ``several=``, or else through the
    adapter."""

    __slots__ = ("combinator", "forms", "of_several", "points")

    def __init__(
        self,
        points: tuple[Question, ...],
        forms: Mapping[str, Adapter],
        combinator: Callable[..., C_co],
        *,
        of_several: bool = False,
    ) -> None:
        self.points, self.forms, self.combinator, self.of_several = points, forms, combinator, of_several

    def adapted(self, form: str, call: HookFunction, several: HookFunction | None) -> HookFunction:
        """Return what to call for a hook of a form. ``several``: the method that it names, or None."""
        return several if self.of_several and several is not None else self.forms[form](call)


def as_it_is(hook: HookFunction) -> HookFunction:
    """Return the hook, as the adapter of a form that takes exactly the arguments of the question."""
    return hook


#: A question in several forms, whatever it is about.
AnyForms = MultiFormQuestion[..., object]
