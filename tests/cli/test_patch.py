"""``git apply`` accepts the output of ``watchroom diff --patch`` for files with any names and contents."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pytest
from calls import ok
from effort import rounds
from history.repositories import needs_git
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from watchroom import Workspace
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.kernel.call_context import CallContext
from watchroom_cli.main import OK, main

pytestmark = [needs_git, pytest.mark.slow(4)]

ALICE: Final = ChangeAuthor(CallContext("alice", "run_command"))
LINES: Final = (
    *("one", "two", "", "crlf\r", "\r", "\t", " trailing ", "é 中", "\x1b[0m", "--- a/x", "+++ b/x"),
    *("\\ No newline at end of file", "@@ -1 +1 @@", "diff --git a/x b/x", "-", "\u2028", "\x0c"),
)


class File(NamedTuple):
    data: bytes
    executable: bool


Files: TypeAlias = Mapping[bytes, File]

parts = st.text(" \"'\\\t\n\r-ab.é中\x7f\x01*?\u202e\udcff", min_size=1, max_size=4).filter(
    lambda part: part.strip(".")
)
names = st.lists(parts, min_size=1, max_size=3).map(lambda each: os.fsencode("/".join(each)))
texts = st.builds(
    lambda lines, end: "\n".join(lines).encode() + end,
    st.lists(st.sampled_from(LINES), max_size=6),
    st.sampled_from([b"", b"\n"]),
)
files = st.builds(File, texts, st.booleans())


@st.composite
def trees(draw: st.DrawFn) -> tuple[Files, Files]:
    """Draw the files before and after, with changed contents and modes."""
    before = draw(st.dictionaries(names, files, max_size=4))
    kept = {name: file for name, file in before.items() if draw(st.booleans())}
    changed = {
        name: file._replace(executable=not file.executable)
        for name, file in kept.items()
        if draw(st.booleans())
    }
    edited = {name: draw(files) for name in kept if draw(st.booleans())}
    return without_clashes(before), without_clashes(
        kept | changed | edited | draw(st.dictionaries(names, files, max_size=3))
    )


def without_clashes(found: Files) -> Files:
    """Return ``found`` without files whose path is a folder of another file."""
    folders = {name[:at] for name in found for at, byte in enumerate(name) if byte == ord("/")}
    return {name: file for name, file in found.items() if name not in folders}


def lay_out(folder: Path, wanted: Files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for entry in os.scandir(os.fsencode(folder)):
        if entry.is_dir():
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for name, file in wanted.items():
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as opened:
            opened.write(file.data)
        os.chmod(path, 0o755 if file.executable else 0o644)


def files_in(folder: Path) -> Files:
    found = {}
    for above, _, inside in os.walk(os.fsencode(folder)):
        for path in (os.path.join(above, name) for name in inside):
            with open(path, "rb") as opened:
                data = opened.read()
            found[os.path.relpath(path, os.fsencode(folder))] = File(data, os.access(path, os.X_OK))
    return found


def patch_of(root: str, since: int) -> bytes:
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["diff", root, "--from", str(since), "--patch"]) == OK
    text = printed.getvalue()
    return b"" if text.startswith("Nothing differs") else text.encode()


def apply(folder: Path, patch: bytes) -> None:
    done = subprocess.run(
        ["git", "apply", "--allow-empty", "-"],
        input=patch,
        cwd=folder,
        capture_output=True,
        env={**os.environ, "GIT_DIR": "/dev/null"},
    )
    assert done.returncode == 0, (done.stderr.decode(), patch.decode())


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(tmp_path_factory.mktemp("patch") / "team", agents=["alice"]) as workspace:
        yield workspace


@settings(max_examples=rounds(60, 2000), suppress_health_check=list(HealthCheck))
@given(pair=trees())
@example(pair=({}, {b"empty": File(b"", False), b"-x": File(b"", True)}))
@example(pair=({b"empty": File(b"", False), b"run": File(b"a\n", False)}, {b"run": File(b"a\n", True)}))
@example(pair=({}, {b" /?": File(b"", False), b"a b": File(b"", True)}))
@example(pair=({b"a/b": File(b"one", False)}, {b"a": File(b"one", False)}))
@example(pair=({b"a": File(b"one", False)}, {b"a/b": File(b"one\r\n", True)}))
@example(pair=({}, {b'"tab\t new\n \xff \xc3\xa9"': File(b"one\r\ntwo", False)}))
def test_git_apply_turns_the_earlier_files_into_the_later_ones(
    team: Workspace, tmp_path_factory: pytest.TempPathFactory, pair: tuple[Files, Files]
) -> None:
    before, after = pair
    base = tmp_path_factory.mktemp("files")
    folder = base / "project"
    lay_out(folder, before)
    task = team.tasks.submit("human:ann", "Build.", folder).id
    team.task_files.record_task_changes(task, ALICE)
    since = team.journal.last_seq()
    lay_out(folder, after)
    team.task_files.record_task_changes(task, ALICE)
    patch = patch_of(team.root, since)
    copy = base / "copy"
    lay_out(copy / "tasks" / task, before)
    apply(copy, patch)
    assert files_in(copy / "tasks" / task) == after
    team.tasks.end(CallContext("human:ann"), task, "done", "")


def test_a_patch_of_all_zones_turns_the_earlier_export_into_the_later_one(
    team: Workspace, tmp_path: Path
) -> None:
    alice = team.tools("alice")
    for name in ("plan.md", "old name.md", "é.md", "-x.md", '"quoted".md', "empty.md"):
        content = "" if name == "empty.md" else "a\r\nb\n"
        ok(alice, "collab_write", filepath=name, content=content, message="m")
        ok(alice, "save_to_my_workspace", filename=name, content=content)
    ok(alice, "realtime_create_document", doc_id="notes", schema={"body": "rga"})
    since = team.journal.last_seq()
    current = Path(team.root, "collaborative/current")
    (current / "plan.md").chmod(0o755)
    for name in ("plan.md", "old name.md", "é.md", "-x.md", '"quoted".md', "empty.md", "new one.md"):
        ok(alice, "collab_write", filepath=name, content="a\r\nB", message="m")
        ok(
            alice,
            "delete_from_my_workspace" if name == "empty.md" else "save_to_my_workspace",
            filename=name,
            **({} if name == "empty.md" else {"content": "B"}),
        )
    edit = {"operation": "insert", "args": {"position": 0, "text": "one\n"}}
    ok(alice, "realtime_edit_text", doc_id="notes", field_name="body", **edit)
    team.export(since, tmp_path / "before")
    team.export(team.journal.last_seq(), tmp_path / "after")
    apply(tmp_path / "before", patch_of(team.root, since))
    for part in ("agents", "collaborative/current"):
        assert files_in(tmp_path / "before" / part) == files_in(tmp_path / "after" / part)
    assert files_in(tmp_path / "after/collaborative/current")[b"plan.md"].executable
    values = "realtime/notes.json"
    assert (tmp_path / "before" / values).read_text() == (tmp_path / "after" / values).read_text()
