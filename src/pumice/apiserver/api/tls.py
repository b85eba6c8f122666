"""Access over a network: a token, and a self-signed certificate if none is given."""

from __future__ import annotations

import ipaddress
import math
import os
import secrets
import shutil
import ssl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from pumice.runtime.files.private import NotPrivate, read_secret, require_own_folder, write_private

TOKEN_MIN = 16
_DAYS = "365"
_RENEWED_S = 30 * 86_400.0


class AccessError(Exception):
    """A token or a certificate cannot be used or created."""


class Certificate(Struct, frozen=True):
    """PEM files. ``trusted``: what clients trust, the certificate itself."""

    certificate: Path
    key: Path

    @property
    def trusted(self) -> bytes:
        return self.certificate.read_bytes()

    def context(self) -> ssl.SSLContext:
        """A TLS context. Raises: AccessError for files without a certificate and its key, or for a key that all can
        read."""
        try:
            read_secret(self.key)
        except NotPrivate as error:
            raise AccessError(str(error)) from None
        except OSError:
            pass  # reported below
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (ssl.SSLError, OSError) as error:
            raise AccessError(f"{self.certificate} and {self.key} are not a certificate and its key: {error}") from None
        return context


def read_token(path: Path) -> str:
    """Return the token in a file. Raises: AccessError if it has none, or all can read it, OSError."""
    try:
        token = read_secret(path).strip()
    except NotPrivate as error:
        raise AccessError(str(error)) from None
    if len(token) < TOKEN_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError(f"{path}: wanted a token of at least {TOKEN_MIN} printable characters without spaces")
    return token


def kept_token(folder: Path) -> str:
    """Return the token in our folder, which is created if it does not exist. Raises: AccessError, OSError."""
    _require_own(folder)
    path = folder / "token"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return read_token(path)


def kept_certificate(folder: Path, names: Sequence[str], now: float | None = None) -> Certificate:
    """Return the certificate in our folder for these names and addresses, created by ``openssl`` if it does not exist,
    or is valid for less than a month from ``now`` (seconds since the epoch, None: by the clock).

    Raises: AccessError without openssl, or for a folder to which others can write.
    """
    _require_own(folder)
    found = Certificate(folder / "tls.crt", folder / "tls.key")
    needed_until = (time.time() if now is None else now) + _RENEWED_S
    if found.certificate.exists() and found.key.exists() and _end_of(found.certificate) > needed_until:
        return found
    program = shutil.which("openssl")
    if program is None:
        raise AccessError("openssl, which creates certificates, is not installed; use --tls-cert and --tls-key")
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
        raise AccessError(f"openssl created no certificate: {last}")
    return found


def _end_of(certificate: Path) -> float:
    """Return when a certificate ends, in seconds since the epoch; inf for a file that has none, which is reported when
    it is used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(certificate)
    except (ssl.SSLError, OSError):
        return math.inf
    ends = [ssl.cert_time_to_seconds(str(each["notAfter"])) for each in context.get_ca_certs()]
    return min(ends, default=math.inf)


def _require_own(folder: Path) -> None:
    try:
        require_own_folder(folder)
    except NotPrivate as error:
        raise AccessError(str(error)) from None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
