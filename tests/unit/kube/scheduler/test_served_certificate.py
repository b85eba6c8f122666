"""Pages over TLS: the certificate that is shown, and that a new one takes its place."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path

import pytest

from pumice.apiserver.api.tls import Certificate, kept_certificate
from pumice.kube.scheduler.served_certificate import ServedCertificate

Show = Callable[[ssl.SSLContext], Coroutine[None, None, bytes]]


@pytest.fixture
def files(tmp_path: Path) -> Certificate:
    """The files that are served; those of a second certificate are beside them."""
    if shutil.which("openssl") is None:
        pytest.skip("NO OPENSSL: nothing to make a certificate with")
    (tmp_path / "second").mkdir()
    kept_certificate(tmp_path / "second", ["127.0.0.1"])
    return kept_certificate(tmp_path, ["127.0.0.1"])


@pytest.fixture
def served(files: Certificate) -> ServedCertificate:
    return ServedCertificate(files.certificate, files.key)


@pytest.fixture
async def shown(served: ServedCertificate) -> AsyncIterator[Show]:
    """What a client sees that trusts a certificate and connects now."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=served.context)
    port = server.sockets[0].getsockname()[1]

    async def ask(trusting: ssl.SSLContext) -> bytes:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return found

    async with server:
        yield ask


def renew(files: Certificate) -> None:
    for path in (files.certificate, files.key):
        path.write_bytes((path.parent / "second" / path.name).read_bytes())


def _der(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


async def test_a_new_certificate_is_shown_without_a_restart(
    files: Certificate, served: ServedCertificate, shown: Show
) -> None:
    old, new = files.certificate, files.certificate.parent / "second" / files.certificate.name
    assert await shown(ssl.create_default_context(cafile=str(old))) == _der(old)
    assert not served.look(), "nothing has changed"
    renew(files)
    assert served.look()
    assert await shown(ssl.create_default_context(cafile=str(new))) == _der(new)


async def test_a_certificate_that_is_wrong_is_reported_and_the_old_one_stays(
    files: Certificate, served: ServedCertificate, shown: Show, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pumice")
    trusting, der = ssl.create_default_context(cafile=str(files.certificate)), _der(files.certificate)
    files.certificate.write_text("no certificate")
    assert not served.look()
    assert not served.look()
    assert await shown(trusting) == der
    assert len(caplog.records) == 1, "said once"
    renew(files)
    assert served.look()


def test_files_that_are_no_certificate_are_an_error(files: Certificate) -> None:
    with pytest.raises(OSError, match=r".+"):
        ServedCertificate(files.key, files.certificate)
    with pytest.raises(OSError, match=r".+"):
        ServedCertificate(files.certificate, files.key, Path("nowhere"))
