"""``pumice run``: schedule a real cluster, with the command line of Volcano's scheduler."""

from __future__ import annotations

import os
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from pumice import __version__
from pumice.cli.answers.live_starts import annotate_starts_option, check_every, with_predictions
from pumice.cli.answers.recording import RecordFlags, record_live, record_options
from pumice.cli.answers.served import answer_pages
from pumice.cli.errors import InputError
from pumice.cli.extras import require
from pumice.cli.live_pages import pages_option, pages_place, show_pages
from pumice.cli.params import SPAN
from pumice.cli.policies import LENIENT_HELP, plugins_option, watched_policy
from pumice.cli.run_flags import REDIRECTION, VERBOSITY, election_options, gates_of, go_flag, labels_of, not_obeyed
from pumice.cli.run_kai import kai_controllers, kai_options, kai_settings, kind_defaults_of
from pumice.cli.run_pages import (
    Files,
    PageAddress,
    certificate_of,
    listen_where_volcano_does,
    log_level_at,
    places_of,
    shown_at,
    tls_of,
    token_guard,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pumice.framework.plugin.registry import Dialect
    from pumice.kube.api.access import Access
    from pumice.kube.api.client import Client
    from pumice.kube.informers.watch_failures import WatchFailures
    from pumice.kube.scheduler.languages import ClusterLanguage
    from pumice.kube.scheduler.lease import Election
    from pumice.kube.scheduler.live import Live
    from pumice.kube.scheduler.node_shards import Sharding
    from pumice.kube.scheduler.reload import ConfFile
    from pumice.kube.scheduler.settings import Settings
    from pumice.runtime.telemetry.metrics import Metrics

_FILE = click.Path(path_type=Path, dir_okay=False)


class _RunOptions(Struct, frozen=True):
    """What the command line asks for, beside the settings of the scheduler itself."""

    kubeconfig: str
    master: str
    rate: float
    burst: float
    lease: tuple[float, float, float] | None
    lease_key: tuple[str, str]
    places: tuple[PageAddress, ...]
    certificate: Files | None
    controllers: str
    kind_defaults: str
    dump_dir: Path | None
    pages: PageAddress | None
    annotate_starts_s: float | None
    record: RecordFlags | None
    plugins_dir: str


@click.command()
@click.option(
    "--scheduler-conf",
    type=_FILE,
    metavar="F",
    help="Policy file; reloaded when it changes (- is standard input, read once). Default: Volcano's default policy.",
)
@plugins_option
@click.option(
    "--kubeconfig", default="", metavar="F", help="Default: KUBECONFIG, ~/.kube/config, or the pod's service account."
)
@click.option("--master", default="", metavar="URL", help="The API server's address, in place of the kubeconfig's.")
@click.option(
    "--scheduler-name",
    multiple=True,
    help="Scheduler name of the pods. Can be repeated. Default: volcano, or kai-scheduler under dialect: kai.",
)
@click.option(
    "--default-queue",
    default="",
    help="Queue of PodGroups without one. Default: default; default-queue under dialect: kai.",
)
@click.option("--schedule-period", type=SPAN, default="1s", show_default=True, help="Longest time between two cycles.")
@go_flag(
    "--wake-on-change",
    default=True,
    help="Start a cycle as soon as something changes; false: only every period, as Volcano does.",
)
@election_options
@click.option(
    "--kube-api-qps",
    type=click.FloatRange(0),
    default=2000.0,
    show_default=True,
    help="Requests a second; 0: no limit.",
)
@click.option(
    "--kube-api-burst",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="Requests at once beyond that rate.",
)
@click.option(
    "--node-selector",
    multiple=True,
    metavar="L:V",
    help="Use only nodes with this label. Can be repeated: nodes with any of the labels.",
)
@click.option(
    "--scheduler-sharding-mode",
    "sharding_mode",
    type=click.Choice(["none", "hard", "soft"], case_sensitive=False),
    default="none",
    show_default=True,
    help="Use only the nodes of this scheduler's NodeShard (hard), or these first (soft).",
)
@click.option(
    "--scheduler-sharding-name",
    "sharding_name",
    default="volcano",
    show_default=True,
    help="Name of this scheduler's NodeShard; with a mode, also of its Lease unless that is named.",
)
@kai_options
@click.option(
    "--feature-gates", multiple=True, metavar="G=BOOL", help="Feature gates of Volcano; unsupported ones are an error."
)
@go_flag("--disable-default-scheduler-config", default=False, help="Exit if --scheduler-conf is missing.")
@go_flag("--priority-class", default=True, help="Take priorities from PriorityClasses.")
@go_flag("--enable-metrics", default=True, help="Serve /metrics and /conf.")
@click.option("--listen-address", default="127.0.0.1:8080", show_default=True, help=":8080 means every address.")
@go_flag("--enable-healthz", default=True, help="Serve /healthz and /readyz.")
@click.option("--healthz-address", default="127.0.0.1:11251", show_default=True, help=":11251 means every address.")
@click.option(
    "--tls-cert-file", type=_FILE, metavar="F", help="Serve /healthz, /readyz and --pages beyond loopback over TLS."
)
@click.option("--tls-private-key-file", type=_FILE, metavar="F", help="Key of --tls-cert-file.")
@click.option("--ca-cert-file", type=_FILE, metavar="F", help="CA certificates for optional client certificates.")
@go_flag("--metrics-tls", default=False, help="Serve /metrics, /conf and questions over TLS as well.")
@pages_option
@annotate_starts_option
@go_flag("--cache-dumper", default=True, help="Write a dump on SIGUSR2.")
@click.option(
    "--controllers",
    default="auto",
    metavar="auto|on|off|LIST",
    show_default=True,
    help="Controllers to run: those that Volcano's do not run (auto), all (on), none (off), or some of"
    " podgroup,queue,job,cronjob,jobflow.",
)
@click.option(
    "--cache-dump-dir",
    "--dump-dir",
    "dump_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/tmp"),
    show_default=True,
    help="Folder for the dumps of SIGUSR2, which `pumice schedule` reads.",
)
@record_options
@click.option(
    "-v", "--v", "verbosity", type=VERBOSITY, default=2, show_default=True, help="Log level; 3, 4 and 5 log more."
)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of log lines."
)
@click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP)
@click.version_option(__version__, prog_name="pumice")
@click.argument("nothing", nargs=-1, type=REDIRECTION, metavar="")
@not_obeyed
def run(**given: Any) -> None:
    """Schedule the pods of a Kubernetes cluster.

    Watches pods, nodes, PodGroups, queues and the other objects that affect scheduling, and binds gangs whole or not at
    all. Accepts the flags of Volcano's scheduler and its policy file. A flag without effect here gives a note; an
    unsupported flag that would change decisions is an error. SIGTERM and Ctrl-C finish the cycle, write its decisions
    and release the lease. SIGUSR2 dumps the scheduler's input.

    \b
    Examples:
      pumice run --scheduler-conf volcano-scheduler.conf
      pumice run --kubeconfig pumice.kubeconfig --leader-elect=false -v 3
      pumice run --listen-address :8080 --healthz-address :11251 --log-format json
    """
    require("run", "run")
    import asyncio

    from pumice.kube.api.errors import KubeError
    from pumice.kube.scheduler.languages import language_of
    from pumice.kube.scheduler.logs import set_up
    from pumice.kube.scheduler.settings import Settings

    gates = gates_of(given["feature_gates"])
    listen_where_volcano_does(given)
    set_up(given["verbosity"], given["log_format"] == "json")
    conf = watched_policy(given["scheduler_conf"], given["plugins_dir"], strict=given["strict"])
    language = language_of(conf.current.policy)
    _name_what_is_not_named(given, conf.current.policy.dialect, language)
    wanted = _wanted(given)
    settings = Settings(
        scheduler_names=tuple(dict.fromkeys(given["scheduler_name"])),
        default_queue=given["default_queue"],
        use_priority_classes=given["priority_class"] and gates.get("PriorityClass", True),
        period_s=given["schedule_period"],
        on_change=given["wake_on_change"],
        node_labels=labels_of(given["node_selector"]),
        lease_namespace=given["lease_namespace"],
        replay=_replay_flags(given),
        language=language,
        sharding=_sharding(given, language),
        **kai_settings(given, language),
    )
    try:
        asyncio.run(_run(wanted, conf, settings))
    except KubeError as error:
        raise InputError(str(error)) from None


def _name_what_is_not_named(given: dict[str, Any], dialect: Dialect, language: ClusterLanguage) -> None:
    given["scheduler_name"] = given["scheduler_name"] or (dialect.scheduler,)
    given["default_queue"] = given["default_queue"] or dialect.default_queue
    given["lease_namespace"] = given["lease_namespace"] or language.lease[0]
    # Schedulers of different shards work side by side: each shard has its own Lease, for which its standbys compete.
    lease = language.lease[1] if given["sharding_mode"] == "none" else given["sharding_name"]
    given["leader_elect_resource_name"] = given["leader_elect_resource_name"] or lease


def _sharding(given: dict[str, Any], language: ClusterLanguage) -> Sharding | None:
    """Raises: InputError."""
    from pumice.kube.scheduler.node_shards import Sharding

    mode = given["sharding_mode"]
    if mode == "none":
        return None
    if language.dialect == "kai":
        raise InputError(
            f"--scheduler-sharding-mode={mode}: not supported under dialect: kai, where --partition-label-value divides"
            " nodes among schedulers"
        )
    if not given["sharding_name"]:
        raise InputError("--scheduler-sharding-name: found nothing, wanted the name of a NodeShard")
    if given["record"] is not None:
        # A record has no shards, so its cycles would be decided with all nodes and differ.
        raise InputError("--record: not supported yet with --scheduler-sharding-mode: replay would use all nodes")
    return Sharding(given["sharding_name"], mode == "hard")


def _replay_flags(given: dict[str, Any]) -> tuple[str, ...]:
    """Return the flags with which ``pumice schedule`` decides the same on a dump."""
    flags = [f"--scheduler-name={name}" for name in given["scheduler_name"] if given["scheduler_name"] != ("volcano",)]
    if given["plugins_dir"]:
        flags.append(f"--plugins-dir={given['plugins_dir']}")
    return (*flags, *(() if given["strict"] else ("--lenient-conf",)))


def _wanted(given: dict[str, Any]) -> _RunOptions:
    """Raises: InputError."""
    lease = None
    if given["leader_elect"]:
        duration, renew, retry = (
            given[f"leader_elect_{name}"] for name in ("lease_duration", "renew_deadline", "retry_period")
        )
        if not retry < renew < duration:
            raise InputError("wanted --leader-elect-retry-period < --leader-elect-renew-deadline < …-lease-duration")
        lease = (duration, renew, retry)
    if given["disable_default_scheduler_config"] and given["scheduler_conf"] is None:
        raise InputError("--disable-default-scheduler-config: found no --scheduler-conf, wanted a policy file")
    check_every(given["annotate_starts"])
    certificate = certificate_of(given)
    return _RunOptions(
        given["kubeconfig"],
        given["master"],
        given["kube_api_qps"],
        float(given["kube_api_burst"]),
        lease,
        (given["lease_namespace"], given["leader_elect_resource_name"]),
        tuple(places_of(given, certificate is not None)),
        certificate,
        given["controllers"],
        kind_defaults_of(given),
        given["dump_dir"] if given["cache_dumper"] else None,
        pages_place(given["pages"], certified=certificate is not None),
        given["annotate_starts"],
        given["record"],
        given["plugins_dir"],
    )


async def _run(wanted: _RunOptions, conf: ConfFile, settings: Settings) -> None:
    from pumice.kube.api.client import Client
    from pumice.kube.informers.watch_failures import WatchFailures
    from pumice.kube.scheduler.http import serving
    from pumice.kube.scheduler.live import Live
    from pumice.runtime.serving.extenders import HttpExtenders
    from pumice.runtime.telemetry.metrics import Metrics

    access = await _access(wanted)
    # The election has a client of its own: no list and no burst of binds delays a renewal.
    async with (
        Client(access, rate=wanted.rate, burst=wanted.burst) as client,
        Client(access) as aside,
        AsyncExitStack() as stack,
    ):
        version = await client.version()
        metrics, troubles = Metrics(settings.language.metrics), WatchFailures()
        election = _election(wanted, aside)
        leading = client if election is None else client.fenced(lambda: election.holds)
        answers = answer_pages(wanted.plugins_dir, stack)
        tls = await tls_of(wanted.certificate, stack)
        beyond = await stack.enter_async_context(token_guard(access))
        pages = None if wanted.pages is None else shown_at(wanted.pages, tls)
        controllers = _controllers(wanted, leading, settings, metrics, WatchFailures(troubles))
        live = answers.live = Live(
            client,
            conf,
            settings,
            metrics,
            election=election,
            beside=with_predictions(controllers, wanted.annotate_starts_s, answers, leading, lambda: live),
            troubles=troubles,
            after_cycle=await show_pages(pages, stack, answers, beyond),
        )
        live.loop.outside = lambda: HttpExtenders(time.monotonic)
        if wanted.record is not None:
            record_live(live, wanted.record, stack)
        _on_signals(live, wanted.dump_dir)
        await log_level_at(os.environ.get("DEBUG_SOCKET_DIR", ""), stack)
        try:
            places = [shown_at(each, tls) for each in wanted.places]
            urls = await stack.enter_async_context(serving(live, places, answers, beyond))
        except OSError as error:
            raise InputError(f"{error.strerror or error}: see --listen-address, --healthz-address") from None
        _tell(access, version, urls)
        await live.run()


async def _access(wanted: _RunOptions) -> Access:
    """Raises: AccessError, InputError."""
    from msgspec.structs import replace

    from pumice.kube.api.access import Access
    from pumice.kube.api.credentials import find_access
    from pumice.kube.api.errors import AccessError

    if wanted.master and not wanted.master.startswith(("http://", "https://")):
        raise InputError(f"--master: found {wanted.master[:60]!r}, wanted http:// or https:// and an address")
    try:
        found = await find_access(wanted.kubeconfig)
    except AccessError:
        if wanted.kubeconfig or not wanted.master:
            raise
        return Access(wanted.master.rstrip("/"), whence="--master")
    return replace(found, url=wanted.master.rstrip("/")) if wanted.master else found


def _election(wanted: _RunOptions, client: Client) -> Election | None:
    if wanted.lease is None:
        return None
    from uuid import uuid4

    from pumice.kube.scheduler.lease import Election

    return Election(client, *wanted.lease_key, f"{socket.gethostname()}_{uuid4()}", *wanted.lease)


def _controllers(
    wanted: _RunOptions, client: Client, settings: Settings, metrics: Metrics, troubles: WatchFailures
) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what runs beside the scheduler. Raises: InputError."""
    if settings.language.dialect == "kai":
        return kai_controllers(wanted.controllers, wanted.kind_defaults, client, settings, troubles)
    from pumice.kube.controllers.kinds import WATCHED_BY
    from pumice.kube.controllers.leading import Controllers, Deference
    from pumice.kube.controllers.loop import ControlSettings
    from pumice.runtime.controllers.podgroups import GroupSettings

    if wanted.controllers in ("off", ""):
        return None
    names = tuple(WATCHED_BY) if wanted.controllers in ("auto", "on") else tuple(wanted.controllers.split(","))
    if unknown := [name for name in names if name not in WATCHED_BY]:
        raise InputError(
            f"--controllers: found {unknown[0][:40]!r}, wanted auto, on, off or some of {','.join(WATCHED_BY)}"
        )
    deference = Deference(lease="") if wanted.controllers == "on" else None
    groups = GroupSettings(scheduler_names=settings.scheduler_names)
    control = ControlSettings(names, groups, settings.default_queue)
    return Controllers(client, control, deference=deference, metrics=metrics, troubles=troubles).run


def _on_signals(live: Live, dump_dir: Path | None) -> None:
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, live.stop)
    for number in (signal.SIGUSR2, signal.SIGUSR1):  # Volcano's dumps: by one to the log, by the other to a file
        if dump_dir is None:
            signal.signal(number, signal.SIG_IGN)
        else:
            loop.add_signal_handler(number, live.dump, dump_dir)


def _tell(access: Access, version: str, urls: list[str]) -> None:
    import logging

    log = logging.getLogger("pumice.run")
    fields = {"server": access.url, "version": version, "urls": urls, "pid": os.getpid()}
    log.info("API server %s, version %s", access.url, version, extra={"fields": fields})
    for url in urls:
        log.info("serving %s/metrics, /healthz, /readyz, /conf", url)
