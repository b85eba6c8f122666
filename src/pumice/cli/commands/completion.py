"""``pumice completion``: what a shell needs to complete commands, options and paths."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Examples:
      pumice completion bash > ~/.local/share/bash-completion/completions/pumice
      pumice completion zsh > "${fpath[1]}/_pumice"
      pumice completion fish > ~/.config/fish/completions/pumice.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = ShellComplete.source(found(ctx.find_root().command, {}, "pumice", "_PUMICE_COMPLETE"))
    click.echo(script)
