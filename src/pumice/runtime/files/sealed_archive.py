"""A ZIP archive that begins with its kind and ends with a checksum.

    mimetype        the kind, first and uncompressed, so that it is at a fixed place in the file
    …               the members
    sha256:…        as the archive's comment, at the very end: of every byte before

The checksum detects accidental changes. It is not a signature: a changed file can be sealed again. The unpacked size of
a member is bounded before it is unpacked.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

from pumice.runtime.files.file_signs import ARCHIVE

UNPACKED_BYTES_MAX = 1 << 30

_KIND = "mimetype"
_KIND_AT = 30  # offset of the first member's name, which its content follows
_SEAL, _DIGITS = b"sha256:", 64
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Exceptions of the ZIP library for invalid bytes.
_WRONG = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class ArchiveError(ValueError):
    """Bytes are not such an archive: why, as a sentence without a subject."""


def pack(kind: str, members: Mapping[str, bytes]) -> bytes:
    """Return the archive of these members, in their order. Equal members give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _put(archive, _KIND, kind.encode(), zipfile.ZIP_STORED)
        for name, content in members.items():
            _put(archive, name, content, zipfile.ZIP_DEFLATED)
        archive.comment = _SEAL + b"0" * _DIGITS
    return sealed(buffer.getvalue())


def _put(archive: zipfile.ZipFile, name: str, content: bytes, packing: int) -> None:
    """Add a member without time and user, which a new ``ZipInfo`` does not have."""
    archive.writestr(zipfile.ZipInfo(name), content, packing, compresslevel=1)


def sealed(archive: bytes) -> bytes:
    """Return the archive with a correct checksum."""
    content = archive[:-_DIGITS]
    return content + sha256(content).hexdigest().encode()


class Archive:
    """A packed archive, for reading. Raises: ArchiveError if it is not one of this kind."""

    def __init__(self, content: bytes, kind: str) -> None:
        named = (_KIND + kind).encode()
        if not content.startswith(ARCHIVE) or content[_KIND_AT : _KIND_AT + len(named)] != named:
            raise ArchiveError(f"is not of kind {kind}")
        if content[:-_DIGITS][-len(_SEAL) :] != _SEAL or sealed(content) != content:
            raise ArchiveError("was truncated or changed: its checksum does not match its content")
        with _reading():
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        members = [member for member in self._archive.infolist() if member.filename != _KIND]
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise ArchiveError("has a duplicate member")
        if sum(member.file_size for member in members) > UNPACKED_BYTES_MAX:
            raise ArchiveError(f"unpacks to more than {UNPACKED_BYTES_MAX >> 20} MB")

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._members)

    def content(self, name: str, bytes_max: int) -> bytes:
        """Return a whole member. Raises: ArchiveError if it does not exist or is too large."""
        member = self._members.get(name)
        if member is None:
            raise ArchiveError(f"has no {name}")
        if member.file_size > bytes_max:
            raise ArchiveError(f"has a {name} of {member.file_size:,} bytes, of which at most {bytes_max:,} are read")
        if member.compress_type not in _PACKINGS:
            raise ArchiveError(f"has a {name} with an unsupported compression")
        with _reading():
            return self._archive.read(member)


@contextmanager
def _reading() -> Iterator[None]:
    """Turn exceptions of the ZIP library into an ArchiveError."""
    try:
        yield
    except _WRONG as error:
        raise ArchiveError(f"is not a readable archive: {str(error)[:200]}") from None
