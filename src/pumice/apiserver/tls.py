"""Who may come in over a network: a token, and a certificate of our own where none is given."""

from __future__ import annotations

import ipaddress
import os
import secrets
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN_MIN = 16
_DAYS = "365"


class AccessError(Exception):
    """A token or a certificate that cannot be used or made."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files. ``trusted``: what clients trust, the certificate itself."""

    certificate: Path
    key: Path

    @property
    def trusted(self) -> bytes:
        return self.certificate.read_bytes()

    def context(self) -> ssl.SSLContext:
        """Raises: AccessError for files that do not hold a certificate and its key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (ssl.SSLError, OSError) as error:
            raise AccessError(f"{self.certificate} and {self.key} are no certificate and its key: {error}") from None
        return context


def is_loopback(address: str) -> bool:
    """Whether only programs on this machine can come to an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def read_token(path: Path) -> str:
    """Raises: AccessError for a file that holds no token, OSError."""
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if len(token) < TOKEN_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError(f"{path}: wanted a token of at least {TOKEN_MIN} printable characters without spaces")
    return token


def kept_token(folder: Path) -> str:
    """The token in a folder of ours, made where there is none."""
    path = folder / "token"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return read_token(path)


def kept_certificate(folder: Path, names: Sequence[str]) -> Certificate:
    """The certificate in a folder of ours for these names and addresses, made by ``openssl`` where there is none.

    Raises: AccessError without openssl.
    """
    found = Certificate(folder / "tls.crt", folder / "tls.key")
    if found.certificate.exists() and found.key.exists():
        return found
    program = shutil.which("openssl")
    if program is None:
        raise AccessError("there is no openssl to make a certificate with; give --tls-cert and --tls-key")
    listed = ",".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in dict.fromkeys(names))
    files = ("-keyout", str(found.key), "-out", str(found.certificate))
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", _DAYS)
    extended = ("-addext", f"subjectAltName={listed}", "-addext", "extendedKeyUsage=serverAuth")
    command = [program, "req", "-x509", *curve, *files, "-subj", "/CN=pumice", *extended]
    old = os.umask(0o077)
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    finally:
        os.umask(old)
    if made.returncode:
        last = (made.stderr.strip().splitlines() or [f"exit code {made.returncode}"])[-1]
        raise AccessError(f"openssl made no certificate: {last}")
    return found


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """A file that only its owner reads, whole or not at all."""
    made = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    made.replace(path)
