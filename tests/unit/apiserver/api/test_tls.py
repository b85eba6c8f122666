"""The certificate that ``pumice serve`` makes for itself."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from pumice.apiserver.api.tls import AccessError, kept_certificate

DAY = 86_400.0
NAMES = ("127.0.0.1", "localhost")

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


def test_a_certificate_is_kept_until_its_last_month(tmp_path: Path) -> None:
    first = kept_certificate(tmp_path, NAMES).trusted
    assert kept_certificate(tmp_path, NAMES, time.time() + 330 * DAY).trusted == first
    renewed = kept_certificate(tmp_path, NAMES, time.time() + 340 * DAY)
    assert renewed.trusted != first
    renewed.context()


def test_a_file_that_is_no_certificate_is_not_replaced(tmp_path: Path) -> None:
    found = kept_certificate(tmp_path, NAMES)
    found.certificate.write_text("mine")
    with pytest.raises(AccessError, match="are not a certificate and its key"):
        kept_certificate(tmp_path, NAMES).context()
