"""Turn errors into messages and exit codes, without a traceback: 2 for wrong input, 1 for a failure, 130 for Ctrl-C.

``PUMICE_DEBUG=1`` lets internal errors through.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from pumice.runtime.printing import escaped

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130
_PATHS_SHOWN = 3
_OURS_TO_NAME = (errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.EPERM, errno.ENAMETOOLONG, errno.EROFS)


#: How messages name standard input.
STDIN_NAME = "standard input"
_STDIN_FILE = "pumice.stdin_file"


def name_as_stdin(path: Path) -> None:
    """Note that a file has what standard input said. Messages then name standard input, as ``as_given`` says."""
    click.get_current_context().meta[_STDIN_FILE] = str(path)


def as_given(text: str) -> str:
    """Return a message with standard input in the place of the file that readers were given for it."""
    ctx = click.get_current_context(silent=True)
    path = None if ctx is None else ctx.meta.get(_STDIN_FILE)
    return text if path is None else text.replace(path, STDIN_NAME)


class InputError(click.ClickException):
    """The user's input is wrong. One line for each problem: what was found, what was wanted, and where."""

    exit_code = WRONG_INPUT

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))

    def show(self, file: IO[Any] | None = None) -> None:
        for problem in self.problems:
            click.echo(f"error: {escaped(problem)}", file=file or sys.stderr)


def nothing_usable(paths: Sequence[str]) -> InputError:
    """Return the error for input without any object or job."""
    named = [STDIN_NAME if path == "-" else path for path in paths[:_PATHS_SHOWN]]
    where = ", ".join(named) + (", …" if len(paths) > _PATHS_SHOWN else "")
    return InputError(f"{where}: found nothing usable, wanted manifests or a trace")


class InternalError(click.ClickException):
    """A fault of Pumice."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"internal error: {escaped(self.message)}", file=file or sys.stderr)
        click.echo(
            "Set PUMICE_DEBUG=1 for the traceback, and please report this with the input.", file=file or sys.stderr
        )


@contextmanager
def guarded(ctx: click.Context) -> Iterator[None]:
    """Turn every error of a command into a message and an exit code."""
    try:
        yield
    except click.UsageError as error:
        raise _of_usage(error) from error
    except InputError as error:
        error.problems = tuple(map(as_given, error.problems))
        raise
    except (click.exceptions.Exit, click.ClickException, click.Abort):
        raise
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        ctx.exit(INTERRUPTED)
    except BrokenPipeError:
        raise  # click ends quietly when the reader has closed the pipe
    except OSError as error:
        raise _of_os(error) from error
    except Exception as error:
        raise _of(error) from error


def _of_usage(error: click.UsageError) -> InputError:
    """Return an error of one line, which names the help of the command."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        # click lists all values that an option may have, a line each.
        text = f"missing {error.param.param_type_name} {error.param.get_error_hint(error.ctx)}"
    else:
        text = error.format_message().rstrip(".")
    more = f" ({error.ctx.command_path} --help for more)" if error.ctx is not None else ""
    return InputError(text[:1].lower() + text[1:] + more)


def _of(error: Exception) -> click.ClickException:
    from pumice.framework.plugin.errors import PluginError, PolicyError

    if isinstance(error, PolicyError):
        return InputError(error.problems)
    if isinstance(error, PluginError):
        return InputError(str(error))
    if debugging():
        raise error
    text = str(error).splitlines()
    return InternalError(f"{type(error).__name__}{': ' + text[0] if text else ''}")


def _of_os(error: OSError) -> click.ClickException:
    if debugging():
        raise error
    text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error.strerror or str(error)
    if error.errno is None or error.errno in _OURS_TO_NAME:
        return InputError(text)
    return _Failed(text)


class _Failed(InputError):
    exit_code = FAILED


def debugging() -> bool:
    """Return True if the user asked for tracebacks."""
    return os.environ.get("PUMICE_DEBUG", "") not in ("", "0")
