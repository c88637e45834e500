"""An upload whose bytes are not what it says they are is refused with the reason."""

from __future__ import annotations

import pytest

from everthread import Invalid
from everthread.workspaces.mime import check_mime

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
PDF = b"%PDF-1.7\n\xe2\xe3\xcf\xd3"
ZIP = b"PK\x03\x04" + b"\x00" * 20
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF"
ELF = b"\x7fELF\x02\x01\x01\x00"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 20
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("name", "body", "declared", "mime"),
    [
        ("a.png", PNG, None, "image/png"),
        ("A.PNG", PNG, "image/png", "image/png"),
        ("a.pdf", PDF, "application/octet-stream", "application/pdf"),
        ("a.docx", ZIP, DOCX, DOCX),
        ("a.docx", ZIP, "application/zip", DOCX),
        ("a.doc", OLE, None, "application/msword"),
        ("a.txt", "日记".encode(), None, "text/plain"),
        ("a.txt", "日记".encode("utf-16"), None, "text/plain"),
        ("a.txt", b"MZ is how this text begins", None, "text/plain"),
        ("a.py", b"BMI = 22", "text/x-python", "text/x-python"),
        ("a.json", b'{"a": 1}', "text/plain", "application/json"),
        ("a.csv", b"a,b\n", "application/vnd.ms-excel", "text/csv"),
        ("a.svg", b"<svg/>", "image/svg+xml", "image/svg+xml"),
        ("a.tar.gz", b"\x1f\x8b\x08\x00", None, "application/gzip"),
        ("noname", PNG, None, "image/png"),
        ("noname", b"text", None, "text/plain"),
        ("a.weird", b"\x00\x01", None, "application/octet-stream"),
        ("a.weird", b"\x00\x01", "application/x-own", "application/x-own"),
        ("empty.png", b"", None, "image/png"),
    ],
)
def test_what_goes_together_passes(name: str, body: bytes, declared: str | None, mime: str) -> None:
    assert check_mime(name, body, declared) == mime


@pytest.mark.parametrize(
    ("name", "body", "declared"),
    [
        ("photo.png", PDF, None),
        ("photo.png", JPEG, None),
        ("photo.png", b"hello", None),
        ("photo.jpg", ELF, None),
        ("notes.txt", ELF, None),
        ("notes.txt", b"a\x00b", None),
        ("data.json", PNG, None),
        ("report.pdf", b"<html>", None),
        ("report.docx", PDF, None),
        ("report.docx", b"plain", None),
        ("noname", b"text", "image/png"),
        ("noname", PNG, "application/pdf"),
        ("photo.png", PNG, "image/jpeg"),
        ("photo.png", PNG, "text/html"),
    ],
)
def test_what_does_not_is_refused_with_the_reason(name: str, body: bytes, declared: str | None) -> None:
    with pytest.raises(Invalid, match=r"mime: the (name|sender)"):
        check_mime(name, body, declared)


def test_a_character_cut_at_the_end_of_the_look_is_still_text() -> None:
    assert check_mime("a.txt", b"x" * 8191 + "日".encode() * 10) == "text/plain"
