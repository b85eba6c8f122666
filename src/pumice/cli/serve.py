"""``pumice serve``: a cluster without machines behind the Kubernetes API, for kubectl and for ``pumice run``."""

from __future__ import annotations

import asyncio
import signal
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli.errors import InputError
from pumice.cli.output import say, tell_problems
from pumice.cli.params import require_there

if TYPE_CHECKING:
    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.journal import Journal
    from pumice.apiserver.server import Place
    from pumice.apiserver.tls import Certificate

DEFAULT_PORT = 8180
LEASE_NAMESPACE = "volcano-system"  # where schedulers keep the Lease that says who leads
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("manifests", metavar="[MANIFEST]…", nargs=-1)
@click.option(
    "--nodes", metavar="SPEC", help="Nodes to have: 8x4gpu or 16:cpu=32,memory=256Gi,gpu=4, groups split by ;"
)
@click.option(
    "--speed",
    type=click.FloatRange(0.001, 1_000_000),
    default=1.0,
    metavar="N",
    help="How fast pods run: at 60 one of an hour (annotation pumice.dev/duration) is done in a minute.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep everything here over restarts.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any that is free."
)
@click.option(
    "--listen",
    default="127.0.0.1",
    metavar="ADDRESS",
    show_default=True,
    help="Beyond loopback: TLS and a token, always.",
)
@click.option(
    "--token-file", type=_FILE, metavar="F", help="The token that clients must show; made where it is needed."
)
@click.option("--tls-cert", type=_FILE, metavar="F.crt", help="Certificate (PEM); made by openssl where it is needed.")
@click.option("--tls-key", type=_FILE, metavar="F.key", help="Its key (PEM).")
@click.option(
    "--kubeconfig",
    type=_FILE,
    default=Path("pumice.kubeconfig"),
    show_default=True,
    help="Where to write how to get in.",
)
def serve(
    manifests: tuple[str, ...],
    nodes: str | None,
    speed: float,
    data: Path | None,
    port: int,
    listen: str,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    kubeconfig: Path,
) -> None:
    """Serve a cluster without machines: a Kubernetes API with nodes, queues, PodGroups and jobs.

    Nodes and each MANIFEST (a file or folder) are there from the start. A pod that is bound runs at once, and ends
    after its annotation pumice.dev/duration. Ctrl-C stops; with --data the next start goes on from there.

    \b
    Examples:
      pumice serve --nodes 8x4gpu
      pumice serve cluster/ --data state/ --speed 60
      pumice serve --nodes 8x4gpu --listen 0.0.0.0 --token-file token
    """
    from pumice.apiserver.journal import DataError
    from pumice.apiserver.tls import AccessError

    require_there(manifests)
    if (tls_cert is None) != (tls_key is None):
        raise InputError("--tls-cert and --tls-key go together")
    try:
        with ExitStack() as files:
            folder = data or Path(files.enter_context(tempfile.TemporaryDirectory(prefix="pumice-")))
            token, certificate = _access(folder, listen, token_file, tls_cert, tls_key)
            place = _place(listen, port, certificate)
            asyncio.run(_serve(manifests, nodes, speed, data, place, token, certificate, kubeconfig))
    except (DataError, AccessError) as error:
        raise InputError(str(error)) from None


async def _serve(
    manifests: tuple[str, ...],
    nodes: str | None,
    speed: float,
    data: Path | None,
    place: Place,
    token: str,
    certificate: Certificate | None,
    kubeconfig: Path,
) -> None:
    from pumice.apiserver.http import Api
    from pumice.apiserver.kubeconfig import write_kubeconfig
    from pumice.apiserver.server import serving

    cluster, journal = _cluster(data, speed)
    _fill(cluster, manifests, nodes)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with serving(Api(cluster, token), place, journal) as url:
            write_kubeconfig(kubeconfig, url, token, certificate.trusted if certificate else b"")
            _tell(cluster, url, kubeconfig)
            await _until(stop, journal)
    except OSError as error:
        if journal is not None and error is journal.failure:
            raise
        raise InputError(f"cannot listen on {place.address} port {place.port}: {error.strerror or error}") from None
    say("stopped")


async def _until(stop: asyncio.Event, journal: Journal | None) -> None:
    """Until the user stops it. Raises: OSError where nothing can be written to the data folder any more."""
    waits = [asyncio.create_task(stop.wait())]
    if journal is not None:
        waits.append(asyncio.create_task(journal.failed.wait()))
    _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for each in left:
        each.cancel()
    if journal is not None and journal.failure is not None:
        raise journal.failure


def _access(
    folder: Path, listen: str, token_file: Path | None, tls_cert: Path | None, tls_key: Path | None
) -> tuple[str, Certificate | None]:
    """The token (empty: none is asked for) and the certificate (None: plain HTTP)."""
    from pumice.apiserver.tls import Certificate, is_loopback, kept_certificate, kept_token, read_token

    given = Certificate(tls_cert, tls_key) if tls_cert is not None and tls_key is not None else None
    token = read_token(token_file) if token_file is not None else ""
    if is_loopback(listen):
        return token, given
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = ["localhost", socket.gethostname(), "127.0.0.1", *([] if listen in ("0.0.0.0", "::") else [listen])]
    return token or kept_token(folder), given or kept_certificate(folder, names)


def _place(listen: str, port: int, certificate: Certificate | None) -> Place:
    from pumice.apiserver.server import Place

    return Place(listen, port, certificate.context() if certificate else None)


def _cluster(data: Path | None, speed: float) -> tuple[Cluster, Journal | None]:
    from pumice.apiserver.cluster import make_cluster
    from pumice.apiserver.definitions import own_definitions
    from pumice.apiserver.journal import open_journal
    from pumice.apiserver.store import Store

    # Versions go on from the clock: what a client remembers of an earlier life is too old, never something else.
    store = Store(int(time.time() * 1000))
    journal = open_journal(data, store) if data is not None else None
    return make_cluster(store, own_definitions(), speed=speed), journal


def _fill(cluster: Cluster, manifests: tuple[str, ...], nodes: str | None) -> None:
    from pumice.apiserver.seed import node_object, place_manifests
    from pumice.sim.traces.shapes import parse_nodes
    from pumice.sim.traces.trace import TraceError

    cluster.place({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_NAMESPACE}})
    try:
        for node in parse_nodes(nodes) if nodes is not None else ():
            cluster.place(node_object(node))
    except TraceError as error:
        raise InputError(str(error)) from None
    tell_problems(place_manifests(cluster, map(Path, manifests)))


def _tell(cluster: Cluster, url: str, kubeconfig: Path) -> None:
    count = cluster.store.count("nodes")
    say(f"serving {count} node{'' if count == 1 else 's'} on {url}; Ctrl-C stops")
    say("in another terminal:")
    say(f"  export KUBECONFIG={kubeconfig.resolve()}")
    say("  kubectl get nodes")
    say("  pumice run --kubeconfig $KUBECONFIG")
