"""``pumice serve``: a cluster without machines behind the Kubernetes API, for kubectl and for ``pumice run``."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from pumice.cli.answers.live_starts import annotate_starts_option, check_every
from pumice.cli.answers.served import answer_pages
from pumice.cli.answers.world import readable
from pumice.cli.errors import InputError
from pumice.cli.extras import require
from pumice.cli.live_pages import pages_option, pages_place, show_pages
from pumice.cli.output import say, tell_problems
from pumice.cli.params import require_there
from pumice.cli.policies import plugins_option, watched_policy
from pumice.cli.run_flags import VERBOSITY
from pumice.cli.run_pages import shown_at
from pumice.cli.scheduling import schedule

if TYPE_CHECKING:
    from pumice.apiserver.api.tls import Certificate
    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.journal import Journal
    from pumice.kube.api.access import Access
    from pumice.kube.scheduler.reload import ConfFile
    from pumice.runtime.serving.listening import Place

DEFAULT_PORT = 8180
_FILE = click.Path(path_type=Path, dir_okay=False)


class _ServeOptions(Struct, frozen=True):
    """What the command line asks for."""

    manifests: tuple[str, ...]
    nodes: str | None
    speed: float
    data: Path | None
    salvage: bool
    port: int
    listen: str
    token_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    kubeconfig: Path
    schedule: bool
    scheduler_conf: Path | None
    plugins_dir: str
    pages: str
    annotate_starts: float | None
    verbosity: int


@click.command()
@click.argument("manifests", metavar="[MANIFEST]…", nargs=-1)
@click.option("--nodes", metavar="SPEC", help="Nodes: 8x4gpu or 16:cpu=32,memory=256Gi,gpu=4; separate groups with ;")
@click.option(
    "--speed",
    type=click.FloatRange(0.001, 1_000_000),
    default=1.0,
    metavar="N",
    help="Speed of pods: at 60 a pod of an hour (annotation pumice.dev/duration) ends after a minute.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder that keeps all objects across restarts.",
)
@click.option(
    "--salvage",
    is_flag=True,
    help="Move damaged lines of --data to damaged.jsonl, report what each contained, and continue with the rest.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any free port."
)
@click.option(
    "--listen",
    default="127.0.0.1",
    metavar="ADDRESS",
    show_default=True,
    help="Addresses other than loopback always use TLS and a token.",
)
@click.option("--token-file", type=_FILE, metavar="F", help="Token for clients; created if needed.")
@click.option("--tls-cert", type=_FILE, metavar="F.crt", help="Certificate (PEM); created with openssl if needed.")
@click.option("--tls-key", type=_FILE, metavar="F.key", help="Key of the certificate (PEM).")
@click.option(
    "--kubeconfig",
    type=_FILE,
    default=Path("pumice.kubeconfig"),
    show_default=True,
    help="Kubeconfig file to write.",
)
@click.option("--schedule", is_flag=True, help="Run scheduler and controllers too, in the same process.")
@click.option(
    "--scheduler-conf",
    type=_FILE,
    metavar="F",
    help="Policy file of --schedule (- is standard input, read once). Default: Volcano's default policy.",
)
@plugins_option
@pages_option
@annotate_starts_option
@click.option("-v", "--v", "verbosity", type=VERBOSITY, default=0, show_default=True, help="Log level, 0 to 5.")
def serve(**given: Any) -> None:
    """Serve a Kubernetes API with simulated nodes, queues, PodGroups and jobs.

    Nodes and the objects of each MANIFEST (a file, a folder, or - for standard input) exist from the start. A bound pod
    runs at once, and ends after the time in its annotation pumice.dev/duration. Ctrl-C stops; with --data the next
    start continues.

    \b
    Examples:
      pumice serve --nodes 8x4gpu --schedule
      pumice serve cluster/ --schedule --scheduler-conf volcano-scheduler.conf -v 4
      pumice serve cluster/ --data state/ --speed 60
      pumice serve --nodes 8x4gpu --listen 0.0.0.0 --token-file token
    """
    from pumice.apiserver.api.tls import AccessError
    from pumice.apiserver.journal import DataError
    from pumice.kube.api.errors import KubeError

    require("serve", "serve")
    manifests = click.get_current_context().with_resource(readable(given["manifests"]))
    wanted = _ServeOptions(**(given | {"manifests": manifests}))
    require_there(wanted.manifests)
    if not wanted.kubeconfig.parent.is_dir():
        raise InputError(f"--kubeconfig: the folder {wanted.kubeconfig.parent} does not exist")
    host, _, port = wanted.listen.rpartition(":")
    if host and ":" not in host and port.isdecimal():  # not an address of IPv6
        raise InputError(f"--listen: found {wanted.listen[:60]!r}, wanted an address; its port is --port {port}")
    if (wanted.tls_cert is None) != (wanted.tls_key is None):
        raise InputError("--tls-cert and --tls-key go together")
    if wanted.salvage and wanted.data is None:
        raise InputError("--salvage needs --data")
    if not wanted.schedule and (
        wanted.scheduler_conf or wanted.plugins_dir or wanted.pages or wanted.annotate_starts is not None
    ):
        raise InputError(
            "--scheduler-conf, --plugins-dir, --annotate-starts and --pages need --schedule; `pumice run` has its own"
        )
    check_every(wanted.annotate_starts)
    pages_place(wanted.pages)  # before anything is written
    try:
        with ExitStack() as files:
            folder = wanted.data or Path(files.enter_context(tempfile.TemporaryDirectory(prefix="pumice-")))
            asyncio.run(_serve(wanted, *_credentials_of(wanted, folder)))
    except (DataError, AccessError, KubeError) as error:
        raise InputError(str(error)) from None


async def _serve(wanted: _ServeOptions, token: str, certificate: Certificate | None) -> None:
    from pumice.apiserver.api.http import Api
    from pumice.apiserver.api.kubeconfig import write_kubeconfig
    from pumice.apiserver.api.server import serving
    from pumice.kube.scheduler.languages import language_of
    from pumice.kube.scheduler.plugin_pages import PluginPages
    from pumice.runtime.serving.listening import Place
    from pumice.runtime.serving.supervision import SupervisedTask
    from pumice.runtime.telemetry.metrics import Metrics

    conf = _conf(wanted)
    metrics = Metrics(language_of(conf.current.policy).metrics if conf is not None else {})
    place = Place(wanted.listen, wanted.port, certificate.context() if certificate else None)
    cluster, journal = _cluster(wanted)
    _fill(cluster, wanted.manifests, wanted.nodes)
    api = Api(cluster, token, metrics=metrics if wanted.schedule else None)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving(api, place, journal))
        except OSError as error:
            raise _cannot_listen(place, error) from None
        write_kubeconfig(wanted.kubeconfig, url, token, certificate.trusted if certificate else b"")
        _tell(cluster, url, wanted)
        _set_up_log(wanted.verbosity)
        scheduler = None
        if conf is not None:
            access = _own_access(url, token, certificate)
            answers = answer_pages(wanted.plugins_dir, stack)
            api.pages = {**answers.pages, **PluginPages(lambda: answers.live).pages}
            at = pages_place(wanted.pages)
            shown = await show_pages(None if at is None else shown_at(at, None), stack, answers)
            given = (access, conf, metrics, wanted.speed, stop, answers, shown, wanted.annotate_starts)
            run = partial(schedule, *given)
            work = partial(_schedule, cluster, run)
            part = SupervisedTask(logging.getLogger("pumice.run"), "scheduler", work, stop=stop)
            api.checks["scheduler"] = part.health
            scheduler = asyncio.create_task(part.run())
        await _until(stop, journal, scheduler)
    say("stopped")


async def _until(stop: asyncio.Event, journal: Journal | None, scheduler: asyncio.Task[None] | None) -> None:
    """Run until the user stops it. The scheduler ends first, after its cycle. Raises: OSError if the data folder can no
    longer be written."""
    ends: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
    if journal is not None:
        ends.append(asyncio.create_task(journal.failed.wait()))
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if journal is not None and journal.failure is not None:
            raise journal.failure
        if scheduler is not None:
            await scheduler
    finally:
        ends += [scheduler] if scheduler is not None else []
        for each in ends:
            each.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _schedule(cluster: Cluster, schedule_there: Callable[[], Awaitable[None]]) -> None:
    """Run the scheduler. Before each start, create its namespaces, which a client may have deleted."""
    _place_namespaces(cluster)
    await schedule_there()


def _place_namespaces(cluster: Cluster) -> None:
    """Create the namespaces of Leases and of reserved GPUs."""
    from pumice.kube.scheduler.languages import KAI, VOLCANO
    from pumice.model.devices.gpu import RESERVATION_NAMESPACE

    for name in (VOLCANO.lease[0], KAI.lease[0], RESERVATION_NAMESPACE):
        cluster.place({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _cannot_listen(place: Place, error: OSError) -> InputError:
    if error.errno == errno.EADDRINUSE:
        return InputError(f"port {place.port} is in use: --port 0 takes any free port")
    return InputError(f"cannot listen on {place.address} port {place.port}: {error.strerror or error}")


def _credentials_of(wanted: _ServeOptions, folder: Path) -> tuple[str, Certificate | None]:
    """Return the token ("" if none is required) and the certificate (None for plain HTTP)."""
    from pumice.apiserver.api.tls import Certificate, kept_certificate, kept_token, read_token
    from pumice.runtime.serving.this_machine import is_loopback

    cert, key, listen = wanted.tls_cert, wanted.tls_key, wanted.listen
    given = Certificate(cert, key) if cert is not None and key is not None else None
    token = read_token(wanted.token_file) if wanted.token_file is not None else ""
    if is_loopback(listen):
        return token, given
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = ["localhost", socket.gethostname(), "127.0.0.1", *([] if listen in ("0.0.0.0", "::") else [listen])]
    return token or kept_token(folder), given or kept_certificate(folder, names)


def _own_access(url: str, token: str, certificate: Certificate | None) -> Access:
    """Return the access of the scheduler: that of any client, but it trusts this certificate alone, whatever names it
    has."""
    from pumice.kube.api.access import Access, bearer

    context = None
    if certificate is not None:
        context = ssl.create_default_context(cadata=certificate.trusted.decode())
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return bearer(url, token, context) if token else Access(url, context)


def _conf(wanted: _ServeOptions) -> ConfFile | None:
    """Return the policy of ``--schedule``. Raises: PolicyError."""
    return watched_policy(wanted.scheduler_conf, wanted.plugins_dir) if wanted.schedule else None


def _cluster(wanted: _ServeOptions) -> tuple[Cluster, Journal | None]:
    from pumice.apiserver.cluster import make_cluster
    from pumice.apiserver.journal import open_journal
    from pumice.apiserver.kinds.definitions import own_definitions
    from pumice.apiserver.objects import unsound
    from pumice.apiserver.store import Store

    # Versions go on from the clock: what a client remembers of an earlier life is too old, never something else.
    store = Store(int(time.time() * 1000))
    data = wanted.data
    journal = open_journal(data, store, unsound, salvage=wanted.salvage) if data is not None else None
    return make_cluster(store, own_definitions(), speed=wanted.speed), journal


def _fill(cluster: Cluster, manifests: tuple[str, ...], nodes: str | None) -> None:
    from pumice.apiserver.seed import node_object, place_manifests
    from pumice.sim.traces.shapes import parse_nodes
    from pumice.sim.traces.trace import TraceError

    _place_namespaces(cluster)
    try:
        for node in parse_nodes(nodes) if nodes is not None else ():
            cluster.place(node_object(node))
    except TraceError as error:
        raise InputError(str(error)) from None
    tell_problems(place_manifests(cluster, map(Path, manifests)))


def _set_up_log(verbosity: int) -> None:
    """Set up the log: problems and decisions; from ``-v 1`` on also followed kinds and leadership."""
    from pumice.kube.scheduler.logs import set_up

    set_up(verbosity, as_json=False)
    if verbosity == 0:
        logging.getLogger("pumice.kube").setLevel(logging.WARNING)


def _tell(cluster: Cluster, url: str, wanted: _ServeOptions) -> None:
    count = cluster.store.count("nodes")
    say(f"serving {count} node{'' if count == 1 else 's'} on {url}; Ctrl-C stops")
    if not count:
        say("note: no pod can run without nodes: create some, or start with --nodes 8x4gpu")
    say("in another terminal:")
    say(f"  export KUBECONFIG={wanted.kubeconfig.resolve()}")
    say("  kubectl get nodes")
    if not wanted.schedule:
        say("  pumice run")
