"""Addresses of the pages of ``pumice run``, and their certificate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pumice.cli.errors import InputError
from pumice.cli.run_flags import place

if TYPE_CHECKING:
    import ssl

    from pumice.kube.api.access import Access
    from pumice.runtime.serving.listening import Place
    from pumice.runtime.serving.viewers import Guard

PageAddress = tuple[str, int, bool]  # address, port, whether over TLS
Files = tuple[Path, Path, Path | None]  # certificate, its key, who signs those of clients


def listen_where_volcano_does(given: dict[str, Any]) -> None:
    """Volcano serves nothing unless a flag says so; an address without a host then means every address."""
    source = click.get_current_context().get_parameter_source
    for enabled, address, everywhere in (
        ("enable_metrics", "listen_address", ":8080"),
        ("enable_healthz", "healthz_address", ":11251"),
    ):
        if source(enabled) is ParameterSource.COMMANDLINE and source(address) is not ParameterSource.COMMANDLINE:
            given[address] = everywhere


def certificate_of(given: dict[str, Any]) -> Files | None:
    """Return the files of the certificate, None without one. Raises: InputError."""
    cert, key = given["tls_cert_file"], given["tls_private_key_file"]
    if (cert is None) != (key is None):
        raise InputError("wanted --tls-cert-file and --tls-private-key-file, or neither")
    if cert is None and (given["metrics_tls"] or given["ca_cert_file"]):
        raise InputError("--metrics-tls, --ca-cert-file: wanted --tls-cert-file and --tls-private-key-file as well")
    return None if cert is None else (cert, key, given["ca_cert_file"])


def places_of(given: dict[str, Any], certified: bool) -> Iterator[PageAddress]:
    """Yield where to serve, and whether over TLS: health as in Volcano if there is a certificate, metrics if enabled.
    Raises: InputError."""
    both = given["enable_metrics"] and given["enable_healthz"] and given["healthz_address"] == given["listen_address"]
    if given["enable_metrics"]:
        tls = given["metrics_tls"] or (both and certified)
        yield (*place("--listen-address", given["listen_address"]), tls)
    if given["enable_healthz"] and not both:
        yield (*place("--healthz-address", given["healthz_address"]), certified)


async def tls_of(files: Files | None, stack: AsyncExitStack) -> ssl.SSLContext | None:
    """Return the certificate for servers, which is renewed until the stack ends; None without one. Raises:
    InputError."""
    import asyncio

    from pumice.kube.scheduler.served_certificate import ServedCertificate

    if files is None:
        return None
    try:
        certificate = ServedCertificate(*files)
    except OSError as error:
        raise InputError(f"--tls-cert-file {files[0]}: {error.strerror or error}") from None
    watching = asyncio.create_task(certificate.watch())
    stack.callback(watching.cancel)
    return certificate.context


def shown_at(at: PageAddress, tls: ssl.SSLContext | None) -> Place:
    """Return where to listen."""
    from pumice.runtime.serving.listening import Place

    address, port, over_tls = at
    return Place(address, port, tls if over_tls else None)


@asynccontextmanager
async def token_guard(access: Access) -> AsyncIterator[Guard]:
    """Yield the guard of addresses beyond loopback: users of the cluster, by their tokens."""
    from pumice.kube.api.client import Client
    from pumice.kube.scheduler.reviews import AT_WORK, CAPS, RATE, Reviews

    # A client of its own: neither binds nor the Lease wait for reviews.
    async with Client(access, caps=CAPS, rate=RATE, burst=RATE, connections_max=AT_WORK) as client:
        yield Reviews(client).viewer


async def log_level_at(folder: str, stack: AsyncExitStack) -> None:
    """Accept requests for another log level below a folder until the stack ends, if one is named. Raises:
    InputError."""
    from pumice.kube.scheduler.level_socket import level_socket

    if folder:
        try:
            await stack.enter_async_context(level_socket(Path(folder)))
        except OSError as error:
            raise InputError(f"DEBUG_SOCKET_DIR: {error.strerror or error}") from None
