"""What may be a path inside a workspace, before any file is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread import Invalid
from everthread.core.workspaces import MAX_DEPTH, check_path

ELSEWHERE = [
    "..",
    "../secret",
    "a/../../secret",
    "a/..",
    "/etc/passwd",
    "//server/share",
    "\\\\server\\share",
    "..\\secret",
    "a\\b",
    "C:",
    "C:\\secret",
    "c:secret",
    "~/secret",
    "~root",
    "a\x00b",
    "a\nb",
    "a/\x1b[2J",
    "a\u202egnp.exe",
    "a\u200bb",
    "half\ud800",
    "a:stream",
    'quote"',
    "what?",
    "all*",
    "a|b",
    "<a>",
    "CON",
    "con.txt",
    "a/NUL",
    "aux.tar.gz",
    "Com1",
    "lpt9.log",
    "COM¹",
    "CONIN$",
    "trailing.",
    "trailing ",
    "a /b",
    " leading",
    "...",
    "x" * 201,
    "啊" * 67,
    "x/" * 600,
    "/".join("x" * (MAX_DEPTH + 1)),
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_i26_a_path_that_could_mean_a_place_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(Invalid, match="path:"):
        check_path(path)


@pytest.mark.parametrize("path", [None, 7, b"a", ["a"], ("a", "b")])
def test_what_is_no_text_is_no_path(path: object) -> None:
    with pytest.raises(Invalid):
        check_path(path)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("", ()),
        (".", ()),
        ("notes/plan.md", ("notes", "plan.md")),
        ("./notes//plan.md", ("notes", "plan.md")),
        ("报告/第一章.md", ("报告", "第一章.md")),
        (".gitignore", (".gitignore",)),
        ("cafe\u0301.txt", ("caf\u00e9.txt",)),
        ("console.txt", ("console.txt",)),
        ("a..b/c", ("a..b", "c")),
    ],
)
def test_an_ordinary_path_is_a_list_of_names(path: str, names: tuple[str, ...]) -> None:
    assert check_path(path) == names


@given(st.text(max_size=60))
def test_i26_whatever_passes_has_no_name_that_leads_out(path: str) -> None:
    try:
        names = check_path(path)
    except Invalid:
        return
    assert all(name not in ("", ".", "..") and not set(name) & set("/\\\0:") for name in names)
    assert check_path("/".join(names)) == names
