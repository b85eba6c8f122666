"""``pumice schedule``: one cycle on manifests, as a question: what would happen, and why not more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.errors import InputError
from pumice.cli.output import described, fail_for, print_json, tell_problems
from pumice.cli.params import require_there
from pumice.cli.policies import CONF_HELP, LENIENT_HELP, choose_policy, plugins_option

if TYPE_CHECKING:
    from pumice.model.events import Object
    from pumice.runtime.one_cycle import Answer
    from pumice.sim.inputs import Inputs


@click.command()
@click.argument("manifests", metavar="MANIFESTS…", nargs=-1, required=True)
@click.option("--conf", type=click.Path(path_type=Path), help=CONF_HELP)
@plugins_option
@click.option(
    "--now",
    type=float,
    metavar="SECONDS",
    help="The moment of the cycle, since the epoch. Default: the newest creationTimestamp.",
)
@click.option(
    "--scheduler-name", multiple=True, default=("volcano",), show_default=True, help="Whose pods. May be given again."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP)
@click.pass_context
def schedule(
    ctx: click.Context,
    manifests: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    as_json: bool,
    strict: bool,
) -> None:
    """Run one scheduling cycle on MANIFESTS (files or folders) as they are.

    Says what is bound where, what is promised a node that others are leaving (pipelined), what is evicted, and for
    every pod that gets nothing, why. Volcano Jobs are expanded into their PodGroup and pods. Nothing leaves this
    command: no cluster is asked or changed. What could not be used is named, the rest is decided on, and the exit code
    is 1.

    \b
    Examples:
      pumice schedule cluster/ jobs.yaml
      kubectl get nodes,queues,podgroups,pods -A -o json > all.json && pumice schedule all.json
      pumice schedule manifests/ --json | jq .unscheduled
    """
    from pumice.runtime.one_cycle import schedule_once
    from pumice.sim.inputs import read_inputs

    require_there(manifests)
    found = read_inputs(manifests)
    chosen = choose_policy(conf, found.confs, strict=strict, plugins_dir=plugins_dir)
    problems = found.scene.problems
    tell_problems(problems)
    if not found.scene.objects and not found.scene.works:
        raise InputError("nothing in the input can be used")
    moment = found.newest if now is None else now
    objects = _objects(found, moment)
    answer = schedule_once(objects, chosen.policy, moment, scheduler_name)
    if as_json:
        beside = {"left_out_actions": list(chosen.left_out), "problems": described(problems)}
        print_json(_described(answer) | beside)
    else:
        from pumice.cli.answer import print_answer

        print_answer(answer, objects, chosen.told)
    fail_for(ctx, problems)


def _objects(found: Inputs, now: float) -> list[Object]:
    """Everything at once: what stands, and what is made of jobs."""
    objects = list(found.scene.objects)
    for work in found.scene.works:
        group, pods = work.expand(now)
        objects += (group, *pods)
    return objects


def _described(answer: Answer) -> dict[str, Any]:
    """The stable shape of ``pumice schedule --json``, but for the problems."""
    return {
        "digest": answer.digest,
        "binds": answer.binds,
        "pipelined": dict(sorted(answer.pipelined.items())),
        "evicts": [evict.pod for evict in answer.evicts],
        "podgroups": {
            key: {
                "phase": status.phase,
                "conditions": [
                    {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
                    for c in status.conditions
                ],
            }
            for key, status in sorted(answer.statuses.items())
        },
        "unscheduled": dict(sorted(answer.unscheduled.items())),
    }
