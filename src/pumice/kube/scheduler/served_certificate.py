"""The certificate of pages that are served over TLS, read again when its files change."""

from __future__ import annotations

import asyncio
import logging
import ssl
from hashlib import sha256
from pathlib import Path

_log = logging.getLogger("pumice.kube")
_BYTES_MAX = 1 << 20


class ServedCertificate:
    """A certificate. ``context``: for a server; new connections get what was read last.

    ``ca``: signs clients' certificates. None is required, but one that is shown must be signed by it, as in Volcano.
    """

    def __init__(self, cert: Path, key: Path, ca: Path | None = None) -> None:
        """Raises: OSError (ssl.SSLError is one)."""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if ca is not None:
            self.context.load_verify_locations(ca)
            self.context.verify_mode = ssl.CERT_OPTIONAL
        self._cert, self._key = cert, key
        self._read = self._digest()
        self.context.load_cert_chain(cert, key)

    async def watch(self, every_s: float = 60.0) -> None:
        """Look for changes until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.look()

    def look(self) -> bool:
        """Read the files. Return True if another certificate is used from now on. If unreadable, the old one stays."""
        try:
            found = self._digest()
            if found == self._read:
                return False
            self._read = found
            self.context.load_cert_chain(self._cert, self._key)
        except OSError as error:
            _log.error("certificate %s not loaded, going on with the one of before: %s", self._cert, error)
            return False
        _log.info("certificate %s reloaded", self._cert)
        return True

    def _digest(self) -> bytes:
        """Return a digest of both files: links of a Secret change without a trace."""
        found = sha256()
        for path in (self._cert, self._key):
            with path.open("rb") as file:
                found.update(file.read(_BYTES_MAX))
        return found.digest()
