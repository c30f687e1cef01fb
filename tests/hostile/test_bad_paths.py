"""Paths in disguise: refused in words by every tool, and without a trace in the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from calls import ok
from evidence import all_rows, snapshot
from hostile.calling import PATH_CALLS, refused_without_a_trace
from watchroom import Toolbox, Workspace
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Write
from watchroom.texts import LANGUAGES

BAD_PATHS: Final = {
    "nothing": "",
    "parent": "..",
    "parent below": "a/../../b",
    "parent at the end": "a/..",
    "parent deep": "../" * 40 + "etc/passwd",
    "here": ".",
    "here below": "a/./b",
    "absolute": "/etc/passwd",
    "absolute twice": "//etc/passwd",
    "home": "~/../x",
    "empty part": "a//b",
    "folder": "a/",
    "drive": "C:",
    "drive below": "c:/x",
    "drive relative": "d:x",
    "backslash": "a\\b",
    "backslash parent": "..\\..\\x",
    "UNC": "\\\\server\\share",
    "device path": "\\\\?\\C:\\x",
    "NUL": "a\0b",
    "NUL at the end": "a.md\0",
    "newline": "a\nb",
    "tab": "a\tb",
    "escape": "a\x1b[2Jb",
    "delete": "a\x7fb",
    "C1 control": "a\x9bb",
    "fullwidth dots": "．．/x",
    "fullwidth slash": "a／b",
    "fullwidth backslash": "a＼b",
    "small full stop": "﹒﹒/x",
    "small reverse solidus": "a﹨b",
    "one dot leader": "․․/x",
    "two dot leader": "‥/x",
    "ellipsis": "…",
    "division slash": "a∕b",
    "fraction slash": "a⁄b",
    "big solidus": "a⧸b",
    "set minus": "a∖b",
    "care of": "a℅b",
    "bidi override": "a\u202egnp.exe",
    "bidi isolate": "a\u2066b",
    "zero-width space": "a\u200bb",
    "zero-width joiner": "a\u200db",
    "word joiner": "a\u2060b",
    "byte order mark": "\ufeffa",
    "soft hyphen": "a\u00adb",
    "tag characters": "a\U000e0041b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "private use": "a\ue000b",
    "unassigned": "a\u0378b",
    "non-character": "a\uffffb",
    "decomposed": "e\u0301.md",
    "decomposed Hangul": "\u1112\u1161\u11ab.md",
    "compatibility Kelvin": "\u212a.md",
    "long part": "x" * 201,
    "long part in bytes": "文" * 67,
    "deep path": "a/" * 32 + "b",
    "deep path that doubles the work with each part": "a/" * 200 + "b",
    "long path": "/".join(["x" * 99] * 11),
    "control folder": ".watchroom/journal.db",
    "control folder below": "a/.watchroom/x",
    "control folder in capitals": ".WatchRoom/config.toml",
    "versions": ".versions/x",
    "git": ".git/hooks/pre-commit",
    "device": "con",
    "device with ending": "NUL.txt",
    "device below": "a/com1.tar.gz",
    "device with a superscript": "COM¹",
    "console in": "CONIN$",
    "device before a space": "con .txt",
    "trailing dot": "a.",
    "trailing dot in a folder": "a./b",
    "trailing space": "a ",
    "leading space": " a",
    "trailing space in a folder": "a /b",
    "no-break space": "a\u00a0",
    "only spaces": "   ",
    "alternate data stream": "a.txt:hidden",
}


@pytest.mark.parametrize("tool", PATH_CALLS)
def test_paths_in_disguise_are_refused_by_every_tool(settled: Workspace, root: Path, tool: str) -> None:
    not_refused = {}
    for disguise, path in BAD_PATHS.items():
        before, seen = snapshot(root), settled.journal.last_seq()
        result = settled.tools("alice").dispatch_tool_call(tool, PATH_CALLS[tool](path))
        settled.flush()
        rows = all_rows(settled.journal, after=seen)
        if result.get("error") != "invalid_path" or [row.error for row in rows] != ["invalid_path"]:
            not_refused[disguise] = result
        elif snapshot(root) != before:
            not_refused[disguise] = {"changed": "the tree"}
    assert not_refused == {}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS)
def test_a_refused_path_is_explained_and_changes_nothing(settled: Workspace, root: Path, path: str) -> None:
    arguments = {"filename": path, "content": "x"}
    for language in LANGUAGES:
        result = refused_without_a_trace(settled, root, "save_to_my_workspace", arguments, language)
        assert result["error"] == "invalid_path"
        assert all(character.isprintable() or character == "\n" for character in result["message"])


def test_metadata_of_a_handoff_cannot_be_pushed_aside(settled: Workspace, root: Path, alice: Toolbox) -> None:
    """Neither a file nor a folder may stand where the metadata of another delivery belongs."""
    for filename in ("x.meta.json", "x.META.json", "x.meta.json/y"):
        arguments = PATH_CALLS["handoff_file"](filename)
        refused_without_a_trace(settled, root, "handoff_file", arguments)
    ok(alice, "handoff_file", to_agent="bob", filename="x", content="x", message="m")
    assert settled.verify() == []


@pytest.mark.sqlite("A server refuses rows with such paths.")
@pytest.mark.parametrize("depth", [33, 200, 490])
def test_a_deep_path_of_an_older_journal_is_laid_out_and_holds_nobody_up(root: Path, depth: int) -> None:
    """Its writer was killed between its row and its file, as by a journal that allowed any depth."""
    with Workspace.open(root, agents=["alice", "bob"]):
        pass
    path = "a/" * (depth - 1) + "b"
    journal = SqliteJournal(root / ".watchroom" / "journal.db")
    journal.append([Write("alice", "collab_write", "collab", path, "deep", expected=0)])
    journal.close()
    with Workspace.open(root) as workspace:
        ok(workspace.tools("bob"), "collab_write", filepath="plan.md", content="x", message="m")
        assert (root / "collaborative" / "current" / path).read_text() == "deep"
        assert workspace.verify() == []
