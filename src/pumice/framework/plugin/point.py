"""What an extension point is: a question, the ways to write a hook that answers it, and how answers are combined.

A point is the decorator that puts a function at it. Its type says what a hook takes and answers, so a wrong hook is an
error for mypy; and it reads the annotations, so a wrong hook is an error at load too. Which way a hook is written in is
read from what it takes, and that is a contract: a hook that takes ``TaskClass`` cannot see the single task, so its
answer is kept for the class; one that takes ``Task`` is asked each time; one that takes rows answers for many at once.

What an answer rests on, and so how long it holds: the rows that were asked about, the class, and every column of the
plugin's own. ``reads=`` on the decorator says it anew where that is too little (a hook that reads the clock) or too
much. A hook about a class may name a method with ``several=``, which takes ClassRows in the place of TaskClass and says
the same of several classes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from msgspec import Struct

from pumice.framework.plugin.errors import PluginError

HOOKS_ATTRIBUTE = "__pumice_hooks__"

#: Words of ``reads=`` beside names of columns, which are ``plugin.column``.
ROWS = "rows"  # the rows that were asked about, in every column of their table and of the plugin's on the same axis
NOW = "now"  # the clock
PODS = "pods"  # pods, and where they are: any task's row
QUEUES = "queues"
JOBS = "jobs"
WORDS = (ROWS, NOW, PODS, QUEUES, JOBS)

Reads = tuple[str, ...]


P = TypeVar("P")  # the plugin (self), or the session of a plugin that is one function
A = ParamSpec("A")
B = ParamSpec("B")
R = TypeVar("R")
S = TypeVar("S")
C = TypeVar("C")


class Mark(NamedTuple):
    """What a decorator leaves on a function: at which point it is, in which form, what it reads (None: as by default),
    and the name of the method that answers for several classes (None: it is asked for each)."""

    point: Question
    form: str
    reads: Reads | None
    several: str | None = None


class Question(Struct, frozen=True, eq=False):
    """The part of a point that has no types. ``name`` is also that of the decorator.

    ``asks``: the question, and what each answer means. ``when``: who asks it, and when. ``switch``: the stem of the
    conf switch (``JobOrder`` for ``enableJobOrder`` and ``enabledJobOrder``), empty when the hook cannot be switched
    off; ``switches``: of these one must be on. ``forms`` maps what a hook may take, as written, to the name of the
    form. ``tells``: of a plugin that is listed twice, each instance hears it once; at other points the last one is
    asked at both places.
    """

    name: str
    asks: str
    when: str
    combinator: Callable[..., Any]
    forms: Mapping[tuple[str, ...], str]
    switch: str = ""
    default_on: bool = True
    switches: tuple[str, ...] = ()
    tells: bool = False

    @property
    def any_switch(self) -> tuple[str, ...]:
        """The switches of which one must be on; empty: always on."""
        return self.switches or ((self.switch,) if self.switch else ())

    def form_of(self, hook: Callable[..., Any], what: str, skip: int = 1) -> str:
        """The form that a hook is written in; ``what`` it is called in an error. ``skip``: leading parameters that are
        no part of the question (``self`` or ``ssn``). Raises: PluginError."""
        found = takes(hook, skip)
        form = self.forms.get(found)
        if form is None:
            known = " or ".join("(" + ", ".join(each) + ")" for each in self.forms)
            raise PluginError(f"{what}: found parameters ({', '.join(found)}), wanted {known}")
        return form

    def mark(self, hook: Any, reads: Reads | None, several: str | None) -> Any:
        """Put a function at this point."""
        form = self.form_of(hook, f"hook {hook.__qualname__} at point {self.name}")
        wrong = [word for word in reads or () if word not in WORDS and "." not in word]
        if wrong:
            names = ", ".join(WORDS)
            raise PluginError(
                f"hook {hook.__qualname__} at point {self.name}: reads={wrong[0]!r}: wanted one of {names},"
                " or the name of a column, plugin.column"
            )
        setattr(hook, HOOKS_ATTRIBUTE, [*getattr(hook, HOOKS_ATTRIBUTE, ()), Mark(self, form, reads, several)])
        return hook

    def decorate(self, hook: Any, *, reads: Reads | None = None, several: str | None = None) -> Any:
        """``@point`` and ``@point(reads=…)``."""
        if hook is None:
            return lambda later: self.mark(later, reads, several)
        return self.mark(hook, reads, several)


def takes(hook: Callable[..., Any], skip: int = 1) -> tuple[str, ...]:
    """Annotations of the positional parameters, as written, without the first ``skip`` of them."""
    code = hook.__code__
    names = code.co_varnames[: code.co_argcount]
    return tuple(spelled(hook.__annotations__.get(name, "?")) for name in names[skip:])


def spelled(annotation: Any) -> str:
    """An annotation as it is written, whether or not the module has ``from __future__ import annotations``."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


Once = Callable[Concatenate[P, A], R]


class Point(Question, Generic[A, R, C], frozen=True, eq=False):
    """A question with one form of hook. ``Point[[Job], bool, bool]``: hooks take a Job and answer a bool, and so does
    whoever asks get one."""

    @overload
    def __call__(self, hook: Callable[Concatenate[P, A], R], /) -> Callable[Concatenate[P, A], R]: ...
    @overload
    def __call__(
        self, /, *, reads: Reads
    ) -> Callable[[Callable[Concatenate[P, A], R]], Callable[Concatenate[P, A], R]]: ...
    def __call__(self, hook: Any = None, /, **said: Any) -> Any:
        return self.decorate(hook, **said)


class MarksTwoForms(Protocol[A, R, B, S]):
    """What ``@point(reads=…)`` leaves to be done: it takes a hook of either form, and no other."""

    @overload
    def __call__(self, hook: Callable[Concatenate[P, A], R], /) -> Callable[Concatenate[P, A], R]: ...
    @overload
    def __call__(self, hook: Callable[Concatenate[P, B], S], /) -> Callable[Concatenate[P, B], S]: ...


class TwoForms(Question, Generic[A, R, B, S, C], frozen=True, eq=False):
    """A question with two forms of hook; whoever asks gets ``C``."""

    @overload
    def __call__(self, hook: Callable[Concatenate[P, A], R], /) -> Callable[Concatenate[P, A], R]: ...
    @overload
    def __call__(self, hook: Callable[Concatenate[P, B], S], /) -> Callable[Concatenate[P, B], S]: ...
    @overload
    def __call__(self, /, *, reads: Reads) -> MarksTwoForms[A, R, B, S]: ...
    def __call__(self, hook: Any = None, /, **said: Any) -> Any:
        return self.decorate(hook, **said)


class Asked(Generic[A, C]):
    """A question as it is put to hooks of several forms, or of several points, at once: each form is adapted to the
    arguments that whoever asks has. A form without an adapter in ``forms`` is not asked. ``of_several``: it is about
    several classes at once, and put to the methods that hooks name for that (``several=``), else through the
    adapter."""

    __slots__ = ("combinator", "forms", "of_several", "points")

    def __init__(
        self,
        points: tuple[Question, ...],
        forms: Mapping[str, Callable[[Callable[..., Any]], Callable[..., Any]]],
        combinator: Callable[..., C],
        *,
        of_several: bool = False,
    ) -> None:
        self.points, self.forms, self.combinator, self.of_several = points, forms, combinator, of_several

    def adapted(self, form: str, call: Callable[..., Any], several: Callable[..., Any] | None) -> Callable[..., Any]:
        """What to call of a hook of a form, which names ``several`` or nothing beside."""
        return several if self.of_several and several is not None else self.forms[form](call)


def as_it_is(hook: Callable[..., Any]) -> Callable[..., Any]:
    """The adapter of a form that takes the very arguments."""
    return hook
