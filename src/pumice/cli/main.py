"""``pumice``: the commands. Each lives in a module of its own, and what it needs is imported when it runs."""

from __future__ import annotations

import difflib
from importlib import import_module

import click

from pumice import __version__
from pumice.cli.errors import guarded

#: name -> (module with the command, what ``pumice --help`` says). The command is the module's function of that name.
COMMANDS: dict[str, tuple[str, str]] = {
    "simulate": ("simulate", "Run manifests or a trace on a simulated cluster."),
    "compare": ("compare", "Run two policies on the same inputs and compare them."),
    "sweep": ("sweep", "Run many simulations, and show which setting is best."),
    "run": ("run", "Schedule a Kubernetes cluster."),
    "log-level": ("log_level", "Change the log level of a running scheduler for a while."),
    "schedule": ("schedule", "Run one cycle on manifests: what is bound, and why pods wait."),
    "explain": ("explain", "Say why a job waits, and what would help it."),
    "whatif": ("whatif", "Try a change to a cluster, and show what differs."),
    "next": ("next", "Say what the next cycle would do."),
    "replay": ("replay", "Run recorded cycles again, one of them under another policy."),
    "story": ("story", "Say what happened to a job, from a record."),
    "pages": ("pages", "Look at a cluster in a browser: what waits, queues, jobs, nodes."),
    "top": ("pages.top", "Look at a cluster in a terminal: what waits, and why."),
    "check-conf": ("check_conf", "Check a policy file, and show all its settings."),
    "serve": ("serve", "Serve a Kubernetes API with simulated nodes."),
    "conformance": ("conformance", "Compare decisions with recorded ones of Volcano and KAI."),
    "fuzz": ("fuzz", "Search random small clusters for a broken invariant."),
    "bench": ("bench", "Measure one cycle on a generated workload."),
    "fill": ("fill", "Fill a GPU cluster under the policies of a study and our own."),
    "completion": ("completion", "Print the completion script for a shell."),
}


class Commands(click.Group):
    """Commands by name, imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # Most are in commands/; one that belongs to another folder says which.
        folder, _, module = COMMANDS[cmd_name][0].rpartition(".")
        command: click.Command = getattr(import_module(f"pumice.cli.{folder or 'commands'}.{module}"), module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(COMMANDS)}."
            raise click.UsageError(f"No command {args[0][:60]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        from pumice.runtime.memory import seldom_collected

        with guarded(ctx), seldom_collected():
            return super().invoke(ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pumice")
def main() -> None:
    """Pumice, a batch scheduler for Kubernetes.

    \b
    Examples:
      pumice simulate examples/demo --report demo.html
      pumice compare old.conf new.conf examples/demo --report compare.html
      pumice schedule manifests/ --conf volcano-scheduler.conf
      pumice check-conf volcano-scheduler.conf

    Every command has --help, with examples. With --json it prints one JSON document to standard output
    and everything else to standard error. Exit codes: 0 done, 1 something failed or was left out (an error: line says
    what), 2 wrong input, 130 interrupted.
    PUMICE_DEBUG=1 shows the traceback of an internal error.
    """
