"""An archive says what it is and that it is whole, and unpacks to no more than it is allowed to."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from pumice.runtime.files import sealed_archive
from pumice.runtime.files.sealed_archive import Archive, ArchiveError, pack, sealed

KIND = "application/vnd.test+zip"
MEMBERS = {"a.json": b'{"a": 1}', "b/c.npy": bytes(range(256)) * 40}


def packed(members: dict[str, bytes] = MEMBERS, kind: str = KIND, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive by other hands than ours, sealed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", kind)
        for name, content in members.items():
            archive.writestr(name, content, packing)
        archive.comment = b"sha256:" + b"0" * 64
    return sealed(buffer.getvalue())


def test_what_is_packed_is_read_back() -> None:
    archive = Archive(pack(KIND, MEMBERS), KIND)
    assert archive.names == MEMBERS.keys()
    assert {name: archive.content(name, 20_000) for name in archive.names} == MEMBERS


def test_the_same_members_are_the_same_bytes() -> None:
    assert pack(KIND, MEMBERS) == pack(KIND, dict(MEMBERS))


def test_every_zip_program_can_open_it() -> None:
    with zipfile.ZipFile(io.BytesIO(pack(KIND, MEMBERS))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["mimetype", *MEMBERS]
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_an_archive_that_is_cut_anywhere_is_refused() -> None:
    content = pack(KIND, MEMBERS)
    for end in range(len(content)):
        with pytest.raises(ArchiveError, match="^is not of kind|^was truncated or changed"):
            Archive(content[:end], KIND)


def test_an_archive_with_any_byte_changed_is_refused() -> None:
    content = pack(KIND, MEMBERS)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        with pytest.raises(ArchiveError, match="^is not of kind|^was truncated or changed"):
            Archive(bytes(changed), KIND)


@pytest.mark.parametrize(
    "change", [lambda content: content + b"\0", lambda content: b"\0" + content, lambda content: content * 2]
)
def test_an_archive_with_more_bytes_is_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ArchiveError):
        Archive(change(pack(KIND, MEMBERS)), KIND)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "is not of kind", id="nothing"),
        pytest.param(packed(kind="application/epub+zip"), "is not of kind", id="another kind"),
        pytest.param(packed()[:-64] + b"0" * 64, "its checksum does not match its content", id="another checksum"),
        pytest.param(sealed(packed()[:200] + packed()[-71:]), "is not a readable archive", id="no directory"),
        pytest.param(packed({"long-name": b"1"}).replace(b"long-name", b"name-long"), "checksum", id="renamed"),
    ],
)
def test_what_is_no_such_archive_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        Archive(content, KIND)


def test_a_member_twice_is_refused() -> None:
    once = packed({"a": b"1", "b": b"2"})
    with pytest.raises(ArchiveError, match="has a duplicate member"):
        Archive(sealed(once.replace(b"b", b"a")), KIND)


def test_a_member_that_unpacks_to_more_is_not_unpacked() -> None:
    archive = Archive(packed({"a": bytes(1 << 20)}), KIND)
    with pytest.raises(ArchiveError, match="has a a of 1,048,576 bytes, of which at most 1,000 are read"):
        archive.content("a", 1000)


def test_a_member_that_says_less_than_it_unpacks_to_is_refused() -> None:
    """The size in the directory is a claim; what is unpacked never goes beyond it."""
    content = packed({"a": bytes(1 << 20)})
    claimed = sealed(content.replace((1 << 20).to_bytes(4, "little"), (16).to_bytes(4, "little")))
    with pytest.raises(ArchiveError, match="is not a readable archive"):
        Archive(claimed, KIND).content("a", 1000)


def test_an_archive_that_unpacks_to_more_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_archive, "UNPACKED_BYTES_MAX", 1 << 20)
    assert Archive(packed({"a": bytes(1 << 20)}), KIND)
    with pytest.raises(ArchiveError, match="unpacks to more than 1 MB"):
        Archive(packed({"a": bytes(1 << 20), "b": b"1"}), KIND)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_one_way_of_packing_is_read(packing: int) -> None:
    with pytest.raises(ArchiveError, match="with an unsupported compression"):
        Archive(packed(packing=packing), KIND).content("a.json", 20_000)


def test_an_encrypted_member_is_refused() -> None:
    content = bytearray(packed({"a": b"1"}))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.rindex(sign) + place
        content[at] |= 1
    with pytest.raises(ArchiveError, match="is not a readable archive"):
        Archive(sealed(bytes(content)), KIND).content("a", 1000)


def test_a_member_that_is_not_there_is_named() -> None:
    with pytest.raises(ArchiveError, match="has no c"):
        Archive(packed(), KIND).content("c", 1)
