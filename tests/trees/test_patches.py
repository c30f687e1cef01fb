"""Codex's patches: they do what Codex 0.171 does, and ours turn one text into another."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from watchroom.features.trees.patches import (
    MAX_PATCH_CHARACTERS,
    FilePatch,
    Hunk,
    PatchInvalid,
    ShellPatch,
    apply_update,
    build_add,
    build_update,
    find_shell_patch,
    format_patch,
    format_update,
    parse_patch,
)

WORDS = (
    "a",
    "b",
    "",
    " ",
    "a ",
    "\ta",
    "—",
    "-",
    "'",
    "’",
    "\x1ca",
    "@@",
    "@@ a",
    "*** End of File",
    "*** End Patch",
    "*** Update File: f",
    "*** Move to: g",
    "\0",
    "\ud800",
)
lines = st.lists(st.sampled_from(WORDS), max_size=20)
repeated = st.lists(st.sampled_from(("a", "b")), max_size=30)
texts = st.one_of(lines, repeated).map(lambda each: "".join(f"{line}\n" for line in each))


def update(*body: str) -> FilePatch:
    (found,) = parse_patch("\n".join(("*** Begin Patch", "*** Update File: f", *body, "*** End Patch")))
    return found


def test_every_kind_of_change_is_parsed() -> None:
    assert parse_patch(
        "*** Begin Patch\n"
        "*** Add File: new file.py\n+one\n+\n"
        "*** Delete File: old.py\n"
        "*** Update File: a.py\n*** Move to: b.py\n@@ def f():\n     one\n-two\n+three\n@@\n four\n*** End of File\n"
        "*** End Patch\n"
    ) == (
        FilePatch("add", "new file.py", text="one\n\n"),
        FilePatch("delete", "old.py"),
        FilePatch(
            "update",
            "a.py",
            "b.py",
            hunks=(
                Hunk(("     one", "-two", "+three"), "def f():"),
                Hunk((" four",), None, is_at_end=True),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("before", "body", "after"),
    [
        # The results were recorded from Codex 0.171.
        ("a\nb\nc", ("@@", "-b", "+B"), "a\nB\nc\n"),
        ("a\nb\na\n", ("@@ b", "-a", "+A"), "a\nb\nA\n"),
        ("a\nb\na\n", ("-a", "+A", "*** End of File"), "a\nb\nA\n"),
        ("a\nb\na\n", ("@@ c", "-a", "+A"), None),
        ("a\nb\na\n", ("-b", "-a", "+B", "@@", "-a", "+c", "*** End of File"), None),
        ("a  \nb\n", ("-a", "+A"), "A\nb\n"),
        ("  a\nb\n", ("-a", "+A"), "A\nb\n"),
        ("a\n  a\n", ("-  a", "+A"), "a\nA\n"),
        ("x \u2014 \u2018y\u2019\n", ("-x - 'y'", "+z"), "z\n"),
        ("  a\nb\n", (" a", "-b", "+B"), "  a\nB\n"),
        ("a\nb\n", ("-a", "-b"), ""),
        ("a\n\n", ("@@", "+b"), "a\n\nb\n"),
        ("", ("@@", "+b"), "b\n"),
        ("a\n", ("-a", "+b", ""), "b\n"),
        ("c\na", (" ", "+", "*** End of File", " "), "\nc\na\n"),
        ("a\r\nb\r\n", ("-b", "+B"), "a\r\nB\r\n"),
        ("a\r\nb\nc\n", (" b", "-c", "+C", "+D"), "a\r\nb\nC\r\nD\r\n"),
        ("a\rb\rc", ("-b", "+X"), "a\rX\rc\r"),
        ("a\nb\r", ("-a", "+X"), "X\nb\r"),
        ("a\n", ("*** Move to: g", "-b", "+c"), None),
    ],
)
def test_an_update_does_what_codex_does(before: str, body: tuple[str, ...], after: str | None) -> None:
    assert apply_update(update(*body), before) == after


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "a",
        "*** Begin Patch",
        "*** Begin Patch\n*** Add File: a\n+a",
        "*** Begin Patch\n*** Update File: a\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** End of File\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@ a\n@@ b\n+x\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n-a\n*** Move to: b\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n-a\n*** End of File\n+b\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n-a\n*** End of File\n*** End of File\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\nab\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a\n-a\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\na\n*** End Patch",
        "*** Begin Patch\n+a\n*** End Patch",
        "x" * (MAX_PATCH_CHARACTERS + 1),
    ],
)
def test_what_codex_refuses_is_invalid(patch: str) -> None:
    with pytest.raises(PatchInvalid):
        parse_patch(patch)


@pytest.mark.parametrize("ending", ["<<EOF", "<<'EOF'", '<<"EOF"'])
def test_a_patch_may_be_in_a_document_and_have_windows_line_ends(ending: str) -> None:
    patch = "*** Begin Patch\n*** Environment ID: x\n*** Update File: a\n-a\n+b\n  *** End Patch  "
    (file,) = parse_patch(f"\n{ending}\n{patch}\nEOF\n".replace("\n", "\r\n"))
    assert file == FilePatch("update", "a", hunks=(Hunk(("-a", "+b")),))


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("apply_patch <<'EOF'\nP\nEOF", ""),
        ("applypatch << X\nP\nX\n", ""),
        ('apply_patch <<-"E"\nP\n\tE', ""),
        (" cd src/a && apply_patch <<'EOF'\nP\nEOF\n\n", "src/a"),
        ("cd 'my src' && apply_patch <<'EOF'\nP\nEOF", "my src"),
        ('cd "my src" && apply_patch <<EOF\nP\nEOF', "my src"),
    ],
)
def test_a_patch_is_found_in_a_command(command: str, folder: str) -> None:
    assert find_shell_patch(command) == ShellPatch("P", folder)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "apply_patch P",
        "cat <<'EOF'\nP\nEOF",
        "apply_patch <<'EOF'\nP",
        "apply_patch <<'EOF'\nP\nEOF\nrm a",
        "ls; apply_patch <<'EOF'\nP\nEOF",
        "apply_patch <<'EOF' && ls\nP\nEOF",
        "cd $HOME && apply_patch <<'EOF'\nP\nEOF",
        "apply_patch <<'EOF'\nP\n\tEOF",
        "apply_patch <<'EOF'\n*** Begin Patch\nEOF\nls\nEOF",
    ],
)
def test_other_commands_have_no_patch(command: str) -> None:
    assert find_shell_patch(command) is None


@given(texts, texts, st.booleans())
@example("a", "a\n", False)
@example("", "a\n", False)
@example("a\n", "", False)
@example("a\n" * 50 + "b\n", "a\n" * 50 + "c\n", False)
def test_our_updates_turn_one_text_into_another(before: str, after: str, is_unfinished: bool) -> None:
    before = before.removesuffix("\n") if is_unfinished else before
    patch = format_update("f", before, after)
    if patch is None:
        assert before == after == ""
        return
    (file,) = parse_patch(patch)
    assert apply_update(file, before) == after


@given(texts, texts, st.sampled_from(("\r\n", "\r")))
def test_updates_keep_other_line_ends(before: str, after: str, end: str) -> None:
    before, after = before.replace("\n", end), after.replace("\n", end)
    file = build_update("f", before, after)
    if before:
        assert file is not None
        assert apply_update(file, before) == after


def test_a_text_that_codex_cannot_write_has_no_update() -> None:
    assert build_update("f", "a\n", "a\nb") is None
    assert build_update("f", "a\n", "a\nb\r\n") is None
    assert build_update("f", "", "") is None
    assert build_add("f", "a") is None
    assert build_add("f", "a\r\n") is None
    assert build_add("f\n", "a\n") is None
    assert build_add("f", "a\n\n") == FilePatch("add", "f", text="a\n\n")


def test_several_files_are_formatted_as_they_are_parsed() -> None:
    files = (
        FilePatch("add", "a", text="one\n\n"),
        FilePatch("add", "empty"),
        FilePatch("delete", "b"),
        FilePatch("update", "c", "d", hunks=(Hunk(("-x", "+y"), "def f():"), Hunk((" z",), is_at_end=True))),
    )
    assert parse_patch(format_patch(files)) == files


@given(
    st.lists(st.sampled_from((*WORDS, "*** Begin Patch", "+a", "-a", " a", "*** Add File: a")), max_size=20)
)
def test_no_text_raises_another_error(body: list[str]) -> None:
    text = "\n".join(("*** Begin Patch", *body, "*** End Patch"))
    find_shell_patch(f"apply_patch <<'EOF'\n{text}\nEOF")
    try:
        files = parse_patch(text)
    except PatchInvalid:
        return
    for file in files:
        apply_update(file, text)
    assert parse_patch(format_patch(files)) == files


def test_large_inputs_take_no_quadratic_time() -> None:
    text = "a\n" * 200_000
    hunks = tuple(Hunk((*[" a"] * 400, "-b")) for _ in range(200))
    started = time.process_time()
    assert apply_update(FilePatch("update", "f", hunks=hunks), text) is None
    assert build_update("f", text, text + "b\n" + text) is not None
    parse_patch("*** Begin Patch\n*** Update File: f\n" + "-a\n+b\n@@\n" * 100_000 + " a\n*** End Patch")
    find_shell_patch(" " * 1_000_000)
    find_shell_patch("cd " + " " * 1_000_000)
    assert time.process_time() - started < 20
