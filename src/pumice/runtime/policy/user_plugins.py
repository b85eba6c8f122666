"""Plugins of users: Python files in a folder, with functions or classes under ``@plugin``.

A file is executed with the rights of this process: it is code, and as trusted as the program.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from pumice.framework.plugin.errors import PluginError, PolicyError
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE
from pumice.framework.plugin.registry import Registry

FILES_MAX = 200
_MODULE = "pumice_plugins_"
_TEXT_MAX = 300


def with_plugins_of(folder: Path, registry: Registry, dialect: str = "volcano") -> Registry:
    """Return the registry with every plugin of the folder's ``*.py`` files (not of sub-folders), by name. ``dialect``
    has them, and every other language finds them that has no plugin of that name.

    Raises: PolicyError with all problems: a folder or file that cannot be read or executed, a file without plugins, a
    name that is used twice, or by a built-in or installed plugin.
    """
    taken = dict.fromkeys(registry.plugins(dialect), "a built-in or installed plugin")
    found: list[Callable[..., Any]] = []
    problems: list[str] = []
    for path in _files(folder):
        try:
            targets = list(_plugins_of(_run(path)))
        except PluginError as error:
            problems.append(f"{path}: {error}")
            continue
        if not targets:
            problems.append(f"{path}: found no plugin, wanted a function or class under @plugin")
        for target in targets:
            name = getattr(target, PLUGIN_ATTRIBUTE).name
            if name in taken:
                problems.append(f"{path}: plugin {name}: {taken[name]} has this name")
            else:
                taken[name] = str(path)
                found.append(target)
    if problems:
        raise PolicyError(problems)
    return registry.with_plugins(dialect, found).with_plugins_for_all(found)


def _files(folder: Path) -> list[Path]:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".py" and path.is_file())
    except OSError as error:
        raise PolicyError([f"{folder}: cannot be read: {error.strerror or error}"]) from None
    if not files:
        raise PolicyError([f"{folder}: found no *.py file, wanted plugins (*.so files of Go plugins cannot be loaded)"])
    if len(files) > FILES_MAX:
        raise PolicyError([f"{folder}: found {len(files)} *.py files, wanted at most {FILES_MAX}"])
    return files


def _run(path: Path) -> ModuleType:
    """Return the module of a file. Raises: PluginError with the line at which it stopped."""
    name = _MODULE + path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a foreign file may raise anything
        del sys.modules[name]
        raise PluginError(_text_of(error, path)) from error
    return module


def _text_of(error: BaseException, path: Path) -> str:
    """Return the error on one line, with the last line of the file that was reached."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else None
    where = line or (lines[-1] if lines else None)
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())[:_TEXT_MAX]
    at = f"line {where}: " if where else ""
    return f"{at}{text}" if isinstance(error, PluginError) else f"{at}{type(error).__name__}: {text}"


def _plugins_of(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """Yield the plugins that the file itself defines, in order, without those that it imports."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__ and hasattr(value, PLUGIN_ATTRIBUTE):
            yield value
