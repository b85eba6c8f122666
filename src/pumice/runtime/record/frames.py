"""A file of frames: each compressed, with its length and checksum, so that a file that was cut is read up to the cut.

    magic                     the kind and the version of the form
    length, checksum, bytes   a frame: its JSON text, compressed; 4, 4 and ``length`` bytes

All frames of a file are one stream of zlib, flushed after each: a frame refers to texts of those before it, which makes
small frames as small as one large text would be.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

MAGIC = b"pumice.record/2\n"
#: Of one frame, compressed and not. The first frame of a file has all objects of a cluster.
FRAME_BYTES_MAX = 256 << 20
TEXT_BYTES_MAX = 1 << 30
_HEAD = struct.Struct("<II")
_LEVEL = 1  # half of the time of 3, and within a sixth of its size


class FrameError(ValueError):
    """Why a file has no whole frame at a place, as a sentence without a subject."""


class FrameWriter:
    """Makes the frames of one file."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)

    def frame(self, text: bytes) -> bytes:
        """Return the next frame, which has this text."""
        packed = self._packer.compress(text) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        return _HEAD.pack(len(packed), zlib.crc32(packed)) + packed


def frames_of(content: bytes) -> Iterator[bytes]:
    """Yield the texts of a file's frames in order. Raises: FrameError at the first that is not whole."""
    if not content.startswith(MAGIC):
        raise FrameError("does not begin as a record does")
    unpacker, at, number = zlib.decompressobj(-zlib.MAX_WBITS), len(MAGIC), 0
    while at < len(content):
        number += 1
        yield _text(unpacker, *_packed(content, at, number), number)
        at += _HEAD.size + _HEAD.unpack_from(content, at)[0]


def _packed(content: bytes, at: int, number: int) -> tuple[bytes, int]:
    """Return the bytes of the frame at a place, and the place. Raises: FrameError."""
    if at + _HEAD.size > len(content):
        raise FrameError(f"ends within frame {number}, at byte {len(content):,}")
    length, checksum = _HEAD.unpack_from(content, at)
    start = at + _HEAD.size
    if length > FRAME_BYTES_MAX or start + length > len(content):
        raise FrameError(f"ends within frame {number}, at byte {len(content):,}")
    packed = content[start : start + length]
    if zlib.crc32(packed) != checksum:
        raise FrameError(f"was changed in frame {number}, at byte {at:,}: its checksum does not match")
    return packed, at


def _text(unpacker: zlib._Decompress, packed: bytes, at: int, number: int) -> bytes:
    try:
        text = unpacker.decompress(packed, TEXT_BYTES_MAX)
    except zlib.error as error:
        raise FrameError(f"cannot be unpacked in frame {number}, at byte {at:,}: {error}") from None
    if unpacker.unconsumed_tail:
        raise FrameError(f"has a frame {number} of more than {TEXT_BYTES_MAX >> 20} MB")
    return text
