"""``pumice check-conf``: is a policy file right, and what does it mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli.console import Table
from pumice.cli.errors import STDIN_NAME
from pumice.cli.output import console, print_json, say
from pumice.cli.params import STDIN, require_there, stdin_bytes
from pumice.cli.policies import plugins_option, registry_of
from pumice.reasons.words import counted
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.framework.plugin.policy_file import Policy


@click.command("check-conf")
@click.argument("conf", metavar="CONF")
@plugins_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, problems, and the policy.")
@click.pass_context
def check_conf(ctx: click.Context, conf: str, plugins_dir: str, as_json: bool) -> None:
    """Check the policy file CONF, or the ConfigMap that holds it; - is standard input.

    Lists all problems: unknown actions, plugins, arguments and switches, and wrong types. If there are none, prints
    the actions, and the tiers with each plugin's arguments and the switches that are off.

    \b
    Examples:
      pumice check-conf volcano-scheduler.conf
      pumice check-conf volcano-scheduler.conf --json | jq .problems
      kubectl get cm -n volcano-system volcano-scheduler-configmap -o yaml | pumice check-conf -
    """
    from pumice.framework.plugin.errors import PolicyError
    from pumice.runtime.policy.check import described, warnings_of

    shown = STDIN_NAME if conf == STDIN else conf
    try:
        policy = _read(conf, plugins_dir)
    except PolicyError as error:
        if as_json:
            print_json({"ok": False, "problems": list(error.problems)})
        else:
            for problem in error.problems:
                say(f"error: {problem}")
            say(f"{shown}: {counted(len(error.problems), 'problem')}")
        ctx.exit(2)
    for warning in warnings_of(policy):
        say(f"warning: {warning}")
    if as_json:
        print_json({"ok": True, "problems": [], "policy": described(policy)})
        return
    _print(shown, policy)


def _read(conf: str, plugins_dir: str) -> Policy:
    from pumice.runtime.policy.conf import SIZE_MAX, load_policy, loaded_from_bytes

    if conf != STDIN:
        require_there((conf,))
        return load_policy(Path(conf), registry_of(plugins_dir))
    raw = stdin_bytes(SIZE_MAX + 1)
    return loaded_from_bytes(raw, registry_of(plugins_dir), where=STDIN_NAME).policy


def _print(conf: str, policy: Policy) -> None:
    from pumice.runtime.policy.check import arguments_of, former_names, switched_off

    out = console()
    out.print(escaped(f"{conf}: OK"))
    out.print(f"dialect {policy.dialect.name}; actions: " + ", ".join(action.name for action in policy.actions))
    for action in policy.actions:
        for name, value in action.arguments.items():
            out.print(escaped(f"  {action.name}: {name} = {value}"))
    table = Table("tier", "plugin", "arguments", "switched off")
    for number, tier in enumerate(policy.tiers, 1):
        for option in tier:
            given = ((name, value) for name, value in arguments_of(option).items() if value not in (None, ""))
            now = former_names(option)
            arguments = escaped(
                ", ".join(
                    f"{name} = {value}" + (f" (now called {now[name]})" if name in now else "") for name, value in given
                )
            )
            table.add(str(number), option.spec.name, arguments, ", ".join(f"enable{s}" for s in switched_off(option)))
    out.print_table(table)
