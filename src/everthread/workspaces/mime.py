"""What an upload is, by its first bytes, held against what its name and its sender say it is.

Only a contradiction is refused: a name and bytes that nobody knows pass as what they are, a row of bytes.
"""

from __future__ import annotations

import mimetypes
from typing import Final

from everthread.core.errors import Invalid

BYTES: Final = "application/octet-stream"
TEXT: Final = "text/plain"
_LOOKED_AT: Final = 8192

_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (257, b"ustar", "application/x-tar"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-msdownload"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/x-wav"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
)
_WEAK: Final = frozenset({"image/bmp", "application/x-msdownload", "application/x-bzip2", "audio/mpeg"})
"""Two or three letters that an ordinary text may begin with: believed of what is no text only."""
_INSIDE: Final = {
    "application/zip": ("application/vnd.", "application/epub+zip", "application/java-archive", "application/x-zip"),
    "application/x-ole-storage": ("application/msword", "application/vnd.ms-"),
    "application/gzip": ("application/x-tar", "application/x-gzip"),
    "application/x-bzip2": ("application/x-tar",),
    "application/x-xz": ("application/x-tar",),
    "video/mp4": ("audio/mp4", "video/quicktime", "audio/x-m4a", "image/heic", "image/heif", "image/avif"),
    "video/webm": ("video/x-matroska", "audio/webm"),
    "audio/ogg": ("video/ogg", "application/ogg", "audio/opus"),
    "audio/x-wav": ("audio/wav", "audio/vnd.wave"),
    "application/vnd.sqlite3": ("application/x-sqlite3",),
    "application/x-executable": ("application/x-sharedlib",),
    "application/x-msdownload": ("application/x-msdos-program", "application/vnd.microsoft"),
}
"""Kinds of file that are made of another."""
_OF_NAMES: Final = {
    ".md": "text/markdown",
    ".toml": "text/x-toml",
    ".yaml": "text/yaml",
    ".yml": "text/yaml",
    ".jsonl": "text/x-jsonl",
    ".ts": "text/typescript",
    ".csv": "text/csv",
    ".sh": "text/x-sh",
    ".db": "application/vnd.sqlite3",
    ".parquet": "application/vnd.apache.parquet",
}
"""What the system's list does not know, or on some machines takes for something else."""
_TEXTUAL: Final = frozenset("json xml javascript sql yaml x-sh x-tex rtf x-python x-ndjson toml".split())
_UNSAID: Final = frozenset({(None, BYTES), ("text/csv", "application/vnd.ms-excel")})
"""What a sender says without meaning it: nothing, or what a browser on Windows takes a table for."""
_PROVABLE: Final = frozenset(mime for _, _, mime in _SIGNATURES) | {"image/svg+xml"}


def sniffed(body: bytes) -> str:
    """The type of these bytes: by a signature, else text or bytes."""
    found = next((mime for at, sign, mime in _SIGNATURES if body[at : at + len(sign)] == sign), None)
    is_text = _is_text(body[:_LOOKED_AT])
    if found is not None and not (is_text and found in _WEAK):
        return found
    return TEXT if is_text else BYTES


def check_mime(name: str, body: bytes, declared: str | None = None) -> str:
    """The type of an upload, or Invalid with the reason: its bytes are not what its name or its sender says."""
    found = sniffed(body)
    by_name = named(name)
    said = _meant(declared, by_name)
    for claim, whose in ((by_name, f"the name {name!r}"), (said, f"the sender of {name!r}")):
        if claim and body and not _agree(claim, found):
            raise Invalid(f"{whose} says {claim}, its bytes are {found}: send it under the right name", field="mime")
    if by_name and said and not _same_kind(by_name, said):
        raise Invalid(f"the name {name!r} says {by_name}, its sender says {said}: one of them is wrong", field="mime")
    return by_name or said or found


def _meant(declared: str | None, by_name: str | None) -> str | None:
    """The type that a sender really means to state."""
    said = "" if declared is None else declared.partition(";")[0].strip().lower()
    return None if not said or (None, said) in _UNSAID or (by_name, said) in _UNSAID else said


def named(name: str) -> str | None:
    """The type that a file's name claims."""
    suffix = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    if suffix in _OF_NAMES:
        return _OF_NAMES[suffix]
    guessed, encoding = mimetypes.guess_type(name.lower(), strict=False)
    packed = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}
    return packed.get(encoding, guessed) if encoding else guessed


def _agree(claim: str, found: str) -> bool:
    """Whether bytes of the type that was found may be of the type that is claimed."""
    if claim == found or claim.startswith(_INSIDE.get(found, ("\0",))):
        return True
    if is_textual(claim):
        return found == TEXT
    if found in (TEXT, BYTES):  # no signature: a claim that has one is refuted by that
        return not any(claim == known or claim.startswith(_INSIDE.get(known, ("\0",))) for known in _PROVABLE)
    return False


def _same_kind(one: str, other: str) -> bool:
    """Whether two claims go together: senders disagree on the names of texts and of types in packages."""
    if one == other or (is_textual(one) and is_textual(other)):
        return True
    return any(
        all(claim == known or claim.startswith(inside) for claim in (one, other)) for known, inside in _INSIDE.items()
    )


def is_textual(mime: str) -> bool:
    family, _, kind = mime.partition("/")
    return family == "text" or kind in _TEXTUAL or kind.endswith(("+json", "+xml", "+yaml"))


def _is_text(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if b"\x00" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as problem:
        return problem.start >= len(head) - 3 and len(head) == _LOOKED_AT  # cut in the middle of a character
    return True
