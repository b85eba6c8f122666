"""What a plugin is, in each of its forms, and how its arguments are read from its signature.

* a function with ``@plugin("name")`` over ``@some_point``: ``(ssn, …, *, argument: float = 1.0)``;
* a class with ``@plugin("name")``: ``__init__(self, ssn, *, argument=…)`` and methods under points;
* a class with ``on_session_open(ssn)`` / ``on_session_close(ssn)`` (Volcano's life cycle), which adds hooks with
  ``ssn.add(point, function)``. Any class may do so in ``__init__``, at points named in ``@plugin("name", adds=(…,))``.

An instance may list points that its arguments switch off in ``unused_points``, and single methods in ``unused_hooks``.
It may have ``figures()``, numbers by name for metrics and reports, and ``wakes_at()``, the next moment (seconds since
the epoch) at which it may answer differently although nothing has happened, or None for never. A plugin that only makes
a running scheduler serve a page names the path of that page, and needs no hook.

Keyword parameters are the arguments. A class may have a static method ``problems(**arguments)``, which returns a
sentence for each value that it cannot use, and one ``keeps_usage(**arguments)``, which returns the ``UsageWindow``s
that the store should keep for it (``Session.usage``). A name in the conf matches if it is equal after ``.`` and ``-``
become ``_``; ``separator`` and ``spelled`` of ``@plugin`` say how it is shown. A parameter that ends in ``_`` collects
all arguments with that prefix, as in ``binpack.resources.nvidia.com/gpu``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from itertools import chain, repeat
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pumice.framework.plugin.errors import PluginError, did_you_mean
from pumice.framework.plugin.point import HOOKS_ATTRIBUTE, Mark, Question, Reads, spelled
from pumice.model.usage import UsageWindow

P = TypeVar("P", bound=Callable[..., object])
PLUGIN_ATTRIBUTE = "__pumice_plugin__"
#: The texts that Volcano accepts for a bool, which it reads with Go's strconv.ParseBool.
_TRUE, _FALSE = {"1", "t", "true"}, {"0", "f", "false"}


class Argument(Struct, frozen=True):
    """An argument that a policy file may give: its name as it is spelled there, its type in words, and the value if it
    is not given. ``now_called``: the argument of which this is the former name, "" for all others."""

    name: str
    type: str
    default: object
    now_called: str = ""


class PluginSpec(Struct, frozen=True, dict=True):
    """One plugin, ready to be built anew for every session.

    ``keeps``: where its own numbers are: ``columns`` (created by the session, and restored by a rollback) or ``python``
    (plain state; a rollback then calls ``on_deallocate`` and ``on_allocate``). ``adds``: points at which it may add
    hooks while it opens, besides those at which its class has some. ``page``: path of the page that is served while the
    plugin is in the current policy, empty for none. ``equal_answers``: methods that answer equally for equal jobs and
    their tasks although they are given single ones, by the table of the plugin's language. ``equal_but_for_columns``:
    those that do so for jobs with equal values in the columns that they name.
    """

    name: str
    target: Callable[..., object]
    arguments: dict[str, Argument]
    #: For each hook, a Mark and the name of the method (empty for a function).
    hooks: tuple[tuple[Question, str, Reads | None, str | None, str], ...]
    keeps: str
    adds: tuple[Question, ...] = ()
    page: str = ""
    equal_answers: frozenset[str] = frozenset()
    equal_but_for_columns: frozenset[str] = frozenset()

    def may_answer_at(self, point: Question) -> bool:
        """Return True if it has hooks at the point, or may add some."""
        # A plugin of Volcano's life cycle registers its hooks while it opens, so before that any point is possible.
        return self.keeps == "python" or self.is_known_at(point)

    def is_known_at(self, point: Question) -> bool:
        """Return True if it says before it opens that it has hooks at the point."""
        return point in self.adds or bool(self.hooks_at(point))

    def build(self, ssn: object, arguments: Mapping[str, object]) -> object:
        """Return a new instance; for a function, the function with the session and its arguments filled in."""
        return self._make(ssn, **arguments)

    @cached_property
    def _make(self) -> Callable[..., object]:
        """What makes an instance from the session and the arguments."""
        # A function is its only hook, so filling in the session and its arguments makes the instance.
        return self.target if inspect.isclass(self.target) else partial(partial, self.target)

    def problems(self, arguments: Mapping[str, object]) -> list[str]:
        """Return what is wrong with the values of some arguments, in words of the plugin. The others have their
        defaults."""
        ask = getattr(self.target, "problems", None)
        if ask is None:
            return []
        try:
            return list(ask(**{name: argument.default for name, argument in self.arguments.items()} | dict(arguments)))
        # Code of the plugin's author, which may raise anything. A policy file with such a plugin is refused, not the
        # process.
        except Exception as error:
            return [f"arguments cannot be looked at: {type(error).__name__}: {error}"]

    def usage_windows(self, arguments: Mapping[str, object]) -> list[UsageWindow]:
        """Return the usage that the store should keep for it under some arguments; the others have their defaults.

        Raises: whatever the plugin raises.
        """
        ask = getattr(self.target, "keeps_usage", None)
        if ask is None:
            return []
        return list(ask(**{name: argument.default for name, argument in self.arguments.items()} | dict(arguments)))

    @cached_property
    def publishes(self) -> bool:
        """True if it has figures."""
        return hasattr(self.target, "figures")

    @cached_property
    def wakes(self) -> bool:
        """True if it says when it wakes."""
        return hasattr(self.target, "wakes_at")

    def hooks_at(self, point: Question) -> tuple[tuple[str, Reads | None, str | None, str], ...]:
        """Return (form, reads, several, attribute) of each hook at the point."""
        return self._hooks_at.get(point, ())

    @cached_property
    def _hooks_at(self) -> dict[Question, tuple[tuple[str, Reads | None, str | None, str], ...]]:
        """Hooks by point."""
        points = dict.fromkeys(hook[0] for hook in self.hooks)
        return {point: tuple(hook[1:] for hook in self.hooks if hook[0] is point) for point in points}


def plugin(
    name: str,
    *,
    keeps: str = "columns",
    adds: tuple[Question, ...] = (),
    page: str = "",
    separator: str = "_",
    spelled: tuple[str, ...] = (),
    former: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[P], P]:
    """Return a decorator that gives a plugin the name by which conf files know it.

    ``separator``: what conf files have in names of its arguments where parameters have ``_``. ``spelled``: names that
    have other separators, as they are in conf files. ``former``: the present name of each argument that is the
    former name of another.
    """

    def mark(target: P) -> P:
        spec = spec_of(name, target, keeps, page)
        # A parameter cannot have a dot, and users know an argument only as their file spells it.
        names = {key: key.replace("_", separator) for key in spec.arguments}
        names |= {normalised(each): each for each in spelled}
        arguments = {
            key: replace(each, name=names[key], now_called=former.get(names[key], ""))
            for key, each in spec.arguments.items()
        }
        # On the function or class itself, so that importing a module registers nothing.
        setattr(target, PLUGIN_ATTRIBUTE, replace(spec, adds=adds, arguments=arguments))
        return target

    return mark


def spec_of(name: str, target: Callable[..., object], keeps: str, page: str = "") -> PluginSpec:
    """Return the spec of a plugin, from its hooks and parameters.

    Raises: PluginError if it has neither a hook nor a page, or an argument without default.
    """
    if inspect.isclass(target):
        # A plugin of that life cycle keeps its state in attributes, as Volcano's do, which a rollback cannot restore.
        if hasattr(target, "on_session_open"):
            keeps = "python"
        # Sorted by name, so the order of two hooks of a class at one point does not depend on where they are written.
        members = inspect.getmembers(target, inspect.isfunction)
        hooks = tuple((*mark, attribute) for attribute, member in members for mark in _marks(member))
        parameters = _keywords(target.__init__, name)
    else:
        # A function is the hook itself, so it has no name of a method.
        hooks = tuple((*mark, "") for mark in _marks(target))
        parameters = _keywords(target, name)
    for point, _, _, several, attribute in hooks:
        if several is not None and not hasattr(target, several):
            raise PluginError(
                f"plugin {name}: hook {attribute or name} at point {point.name}: found several={several!r}, wanted the"
                " name of a method of the plugin"
            )
    if not hooks and not page and not hasattr(target, "on_session_open"):
        raise PluginError(f"plugin {name}: no hook found; put @<point> under @plugin, or define on_session_open(ssn)")
    return PluginSpec(name, target, parameters, hooks, keeps, page=page)


def _marks(function: Callable[..., object]) -> list[Mark]:
    """Return what decorators of points left on a function."""
    found: list[Mark] = getattr(function, HOOKS_ATTRIBUTE, [])
    return found


def _keywords(function: Callable[..., object], plugin_name: str) -> dict[str, Argument]:
    """Return the arguments that are keyword parameters of a function. Raises: PluginError for one without default."""
    found = {}
    for parameter in inspect.signature(function).parameters.values():
        # Positional parameters are what the point passes (rows, tasks), and ``ssn``.
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        # A policy file may leave out any argument.
        if parameter.default is inspect.Parameter.empty:
            raise PluginError(f"plugin {plugin_name}: argument {parameter.name} has no default")
        found[parameter.name] = Argument(parameter.name, spelled(parameter.annotation), parameter.default)
    return found


def normalised(name: str) -> str:
    """Return an argument name as a Python identifier."""
    return re.sub(r"[.\-]", "_", name)


def _punctuated_like(found: str, name: str) -> str:
    """Return the name of an argument with the separators that ``found`` has in place of ``_``, in order. The last one
    is repeated for the rest."""
    marks = re.findall(r"[._\-]", found) or ["_"]
    left = chain(marks, repeat(marks[-1]))
    return re.sub("_", lambda _: next(left), name)


def read_arguments(
    known: Mapping[str, Argument], given: Mapping[str, object], where: str
) -> tuple[dict[str, object], list[str]]:
    """Return arguments for the constructor, and the problems found. A wrong value leaves the default.

    Source: Volcano's Arguments (framework/arguments.go): ints for ints, ints and floats for floats, bools or strings
    that can be parsed for bools, strings for strings.
    """
    values: dict[str, object] = {}
    collected: dict[str, dict[str, object]] = {}
    problems: list[str] = []
    # A family has no name of its own in a file, only names that begin with its prefix.
    families = {name: arg for name, arg in known.items() if name.endswith("_")}
    for key, value in given.items():
        name = normalised(str(key))
        # An exact name goes before a family whose prefix it has, so a family cannot hide an argument.
        family = next((f for f in families if name.startswith(f) and name != f), None)
        argument = (known.get(name) if name not in families else None) or (families[family] if family else None)
        # Suggestions are written as the user writes names, so that they can be copied into the file.
        if argument is None:
            spelled = [_punctuated_like(str(key), each) for each in known]
            problems.append(f'{where}: unknown argument "{key}"{did_you_mean(str(key), spelled)}')
            continue
        wanted = argument.type if not family or name in known else _type_in_family(argument)
        read, ok = _convert(value, wanted)
        if not ok:
            problems.append(f"{where}: argument {key}: found {value!r:.100}, wanted {_WANTED.get(wanted, wanted)}")
        elif family and name not in known:
            collected.setdefault(family, {})[str(key)[len(family) :]] = read
        else:
            values[name] = read
    return values | collected, problems


#: The greatest numbers that a conf may have, so that products and sums of a few are exact, or at least finite.
INT_MAX, FLOAT_MAX = 2**31 - 1, 1e12


def _type_in_family(argument: Argument) -> str:
    """Return the type of the values that a family collects, from ``Mapping[str, float]``."""
    found = re.search(r"Mapping\[str, (\w+)\]", argument.type)
    return found[1] if found else "float"


_WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text", "Any": "any value"}


def _convert(value: object, wanted: str) -> tuple[object, bool]:
    """Return the value as the type that is wanted, and True if that was possible."""
    # A bool is an int in Python, and a conf that has ``true`` for a number is wrong.
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    match wanted:
        case "int":
            return value, isinstance(number, int) and abs(number) <= INT_MAX
        case "float":
            return (float(number), True) if number is not None and abs(number) <= FLOAT_MAX else (value, False)
        case "bool":
            if isinstance(value, str):
                return value.lower() in _TRUE, value.lower() in _TRUE | _FALSE
            return value, isinstance(value, bool)
        case "str":
            return value, isinstance(value, str)
    return value, True
