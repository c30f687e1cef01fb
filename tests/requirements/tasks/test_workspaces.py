"""Folders of tasks: the properties of TASKS about files, and all of their errors."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from effort import rounds
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tasking import Team, emptied, on_disk, without_privileges
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import InvalidWorkspace, TaskNotFound
from watchroom.kernel.call_context import CallContext
from watchroom.model import Write
from watchroom.platform.sandbox.system_folders import is_system_folder

EXAMPLES = settings(max_examples=rounds(30, 60), suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = st.from_regex(r"[a-z0-9_é中-]{1,12}(\.[a-z]{1,3})?", fullmatch=True).filter(
    lambda name: name not in ("con", "nul", "aux", "prn")
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


@EXAMPLES
@given(st.text(max_size=60), st.text(max_size=20))
@example("", "/etc/passwd")
@example("a/", "/../../b")
def test_property_1_a_path_with_dots_is_refused(team: Team, before: str, after: str) -> None:
    path = f"{before}..{after}"
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"}), ("list_files", {})):
        assert refused(team.one, tool, path=path, **more)["error"] == "path_traversal_blocked"
    assert on_disk(team.folder) == {}


@EXAMPLES
@given(st.sampled_from(["/", "//", "\\", "C:", "c:/", "Z:\\", "~/"]), st.text(max_size=60))
def test_property_1_an_absolute_path_is_refused(team: Team, prefix: str, rest: str) -> None:
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"}), ("list_files", {})):
        result = refused(team.one, tool, path=prefix + rest, **more)
        assert result["error"] == "path_traversal_blocked"


@EXAMPLES
@given(st.text(max_size=60))
def test_property_1_whatever_the_path_nothing_is_written_elsewhere(team: Team, path: str) -> None:
    before = on_disk(team.others), sorted(os.listdir(team.folder.parent))
    team.one.dispatch_tool_call("write_file", {"path": path, "content": "x"})
    assert (on_disk(team.others), sorted(os.listdir(team.folder.parent))) == before


@EXAMPLES
@given(PATHS, TEXTS)
def test_property_2_what_is_written_is_read(team: Team, path: str, content: str) -> None:
    folder = emptied(team.folder)
    assert ok(team.one, "write_file", path=path, content=content)["ok"] is True
    assert ok(team.one, "read_file", path=path)["content"] == content
    assert on_disk(folder) == {path: content.encode()}


@EXAMPLES
@given(PATHS, PATHS)
def test_property_3_tasks_do_not_see_each_other(team: Team, path: str, others: str) -> None:
    folder, elsewhere = emptied(team.folder), emptied(team.others)
    ok(team.one, "write_file", path=path, content="mine")
    ok(team.other, "write_file", path=others, content="yours")
    assert on_disk(folder) == {path: b"mine"}
    assert on_disk(elsewhere) == {others: b"yours"}
    if path != others:
        assert refused(team.one, "read_file", path=others)["error"] in ("file_not_found", "not_text")
    for way in (f"../{elsewhere.name}/{others}", str(elsewhere / others)):
        assert refused(team.one, "read_file", path=way)["error"] == "path_traversal_blocked"


@EXAMPLES
@given(st.lists(PATHS, max_size=5, unique=True))
def test_property_4_and_9_all_is_listed_and_counted(team: Team, paths: list[str]) -> None:
    for path in paths:
        above = {"/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)}
        assume(not above & set(paths))
    folder = emptied(team.folder)
    for number, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"x" * number)
    there = [path for path in folder.rglob("*") if ".watchroom" not in path.parts]
    files = {str(path.relative_to(folder)) for path in there if path.is_file()}
    folders = {str(path.relative_to(folder)) for path in there if path.is_dir()}
    assert everything(team.one, ".") == {"file": files, "directory": folders}
    info = ok(team.one, "get_workspace_info")
    assert (info["fileCount"], info["dirCount"]) == (len(files), len(folders))
    assert info["totalSize"] == sum(range(len(paths)))


def test_an_empty_folder_says_when_it_was_last_modified(team: Team) -> None:
    ok(team.one, "list_files")
    # Opening the folder created the control folder in it.
    os.utime(emptied(team.folder), (1_700_000_000, 1_700_000_000))
    info = ok(team.one, "get_workspace_info")
    assert (info["fileCount"], info["dirCount"], info["totalSize"]) == (0, 0, 0)
    assert info["lastModified"] == "2023-11-14T22:13:20.000Z"


def test_a_long_folder_is_listed_in_parts(team: Team) -> None:
    folder = emptied(team.folder)
    names = sorted(f"{number:04}.txt" for number in range(1002))
    for name in names:
        (folder / name).touch()
    first = ok(team.one, "list_files")
    assert [each["name"] for each in first["files"]] == names[:1000]
    assert first["more"] == 2
    assert names[999] in first["notice"]
    rest = ok(team.one, "list_files", after=names[999])
    assert [each["name"] for each in rest["files"]] == names[1000:]
    assert "more" not in rest


def everything(toolbox: Toolbox, path: str) -> dict[str, set[str]]:
    """Return what `list_files` lists in a folder and beneath it."""
    found: dict[str, set[str]] = {"file": set(), "directory": set()}
    entries: Any = ok(toolbox, "list_files", path=path)["files"]
    for entry in entries:
        assert set(entry) == {"name", "type", "size"}
        below = entry["name"] if path == "." else f"{path}/{entry['name']}"
        found[entry["type"]].add(below)
        if entry["type"] == "directory":
            for kind, paths in everything(toolbox, below).items():
                found[kind] |= paths
    return found


@EXAMPLES
@given(PATHS)
def test_property_8_a_missing_folder_is_made(team: Team, path: str) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / path
        task = team.workspace.tasks.submit("human:dana", "Build something.", folder)
        assert folder.is_dir()
        assert team.workspace.tasks.find(task.id).folder == str(folder.resolve())
        team.workspace.tasks.end(CallContext("human:dana"), task.id, "done")


def test_without_a_task_or_a_folder_there_is_no_workspace(team: Team) -> None:
    team.workspace.register([Agent("carol")])
    task = team.workspace.tasks.submit("human:dana", "Only think.")
    team.workspace.register([Agent("dave", task=task.id)])
    for agent in ("carol", "dave"):
        toolbox = team.workspace.tools(agent)
        for tool, arguments in (
            ("read_file", {"path": "a"}),
            ("write_file", {"path": "a", "content": "x"}),
            ("list_files", {}),
            ("get_workspace_info", {}),
        ):
            assert refused(toolbox, tool, **arguments)["error"] == "workspace_not_bound"


def test_only_who_has_a_task_is_offered_its_tools(team: Team) -> None:
    team.workspace.register([Agent("carol")])
    offered = {each["name"] for each in team.one.get_tool_definitions()}
    others = {each["name"] for each in team.workspace.tools("carol").get_tool_definitions()}
    files = {"read_file", "write_file", "list_files", "get_workspace_info", "run_command"}
    society = {"send_message", "spawn_agent", "terminate_agent", "list_agents", "end_task"}
    assert offered - others == files | society


def test_what_is_missing_is_not_found(team: Team) -> None:
    assert refused(team.one, "read_file", path="a.txt")["error"] == "file_not_found"
    assert refused(team.one, "list_files", path="src")["error"] == "file_not_found"


def test_what_the_system_denies_is_said(team: Team) -> None:
    (team.folder / "secret").write_text("x")
    (team.folder / "secret").chmod(0)
    team.folder.chmod(0o555)
    with without_privileges():
        assert refused(team.one, "read_file", path="secret")["error"] == "permission_denied"
        assert refused(team.one, "write_file", path="new", content="x")["error"] == "permission_denied"


@pytest.mark.parametrize("target", ["../other/plan.md", "/etc/passwd", "inside.md", "missing"])
def test_a_symlink_leads_nowhere(team: Team, target: str) -> None:
    ok(team.other, "write_file", path="plan.md", content="theirs")
    ok(team.one, "write_file", path="inside.md", content="mine")
    (team.folder / "link").symlink_to(target)
    assert refused(team.one, "read_file", path="link")["error"] == "path_traversal_blocked"
    assert refused(team.one, "write_file", path="link", content="x")["error"] == "path_traversal_blocked"
    assert on_disk(team.others) == {"plan.md": b"theirs"}
    assert ok(team.one, "read_file", path="inside.md")["content"] == "mine"


def test_nor_does_a_folder_that_is_one(team: Team) -> None:
    ok(team.other, "write_file", path="deep/plan.md", content="theirs")
    (team.folder / "link").symlink_to("../other/deep")
    for tool, arguments in (
        ("read_file", {"path": "link/plan.md"}),
        ("write_file", {"path": "link/plan.md", "content": "x"}),
        ("write_file", {"path": "link/new.md", "content": "x"}),
        ("list_files", {"path": "link"}),
    ):
        assert refused(team.one, tool, **arguments)["error"] == "path_traversal_blocked"
    assert on_disk(team.others) == {"deep/plan.md": b"theirs"}


def test_what_is_no_text_is_not_read(team: Team) -> None:
    (team.folder / "picture.png").write_bytes(b"\x89PNG\0")
    os.mkfifo(team.folder / "pipe")
    assert refused(team.one, "read_file", path="picture.png")["error"] == "not_text"
    assert refused(team.one, "read_file", path="pipe")["error"] == "not_text"
    assert refused(team.one, "write_file", path="pipe", content="x")["error"] == "not_text"


def test_a_folder_that_cannot_be_one_is_refused(team: Team, tmp_path: Path, root: Path) -> None:
    (tmp_path / "file").write_text("x")
    Workspace.open(tmp_path / "others", agents=["eve"]).close()
    rules = {
        "relative/path": "not_absolute",
        f"{tmp_path}/a\0b": "not_absolute",
        f"{tmp_path}/a\ud800": "not_absolute",
        str(tmp_path / "file"): "not_a_folder",
        str(tmp_path / "file" / "below"): "not_a_folder",
        str(tmp_path): "holds_the_journal",
        str(root / "agents"): "holds_the_journal",
        str(team.folder): "of_another_task",
        str(team.folder / "below"): "of_another_task",
        str(tmp_path / "others"): "of_a_team",
        str(tmp_path / "others" / "a" / "b"): "of_a_team",
        str(tmp_path / "bare"): "bare_repository",
    }
    for name in ("objects", "refs"):
        (tmp_path / "bare" / name).mkdir(parents=True)
    (tmp_path / "bare" / "HEAD").write_text("ref: refs/heads/main\n")
    for path, rule in rules.items():
        with pytest.raises(InvalidWorkspace) as caught:
            team.workspace.tasks.submit("human:dana", "Build something.", path)
        assert caught.value.values["rule"] == rule, path
    assert not (team.folder / "below").exists(), "what is refused is not made"


OF_THE_SYSTEM = (
    *("/", "/bin", "/boot", "/dev/shm", "/etc", "/etc/watchroom", "/lib/x", "/proc/self", "/run"),
    *("/sbin", "/sys", "/usr", "/usr/local/src", "/var", "/var/lib/watchroom", "/var/log"),
)


@pytest.mark.parametrize("folder", OF_THE_SYSTEM)
def test_a_folder_of_the_system_is_refused_by_whatever_name(team: Team, tmp_path: Path, folder: str) -> None:
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "above").symlink_to(Path(folder).parent)
    for path in (folder, f"{folder}/", tmp_path / "link", tmp_path / "above" / Path(folder).name):
        with pytest.raises(InvalidWorkspace) as caught:
            team.workspace.tasks.submit("human:dana", "Build something.", path)
        assert caught.value.values["rule"] in ("of_the_system", "too_wide")


@pytest.mark.parametrize("folder", ["/dev/shm/work", "/run/media/dana/disk/work"])
def test_what_users_have_among_the_systems_folders_is_their_own(folder: str) -> None:
    assert not is_system_folder(folder)
    assert is_system_folder(str(Path(folder).parents[-3]))


def test_a_task_that_was_begun_in_a_folder_of_the_system_has_no_files(team: Team) -> None:
    """An older version did not refuse such folders: only the row remains."""
    first = next(row for row in team.workspace.journal.rows(limit=100) if row.zone == "task")
    content = json.loads(team.workspace.journal.content(first.seq) or "")
    text = json.dumps({**content, "taskId": "old", "workspacePath": "/etc/watchroom"})
    draft = Write("human:dana", "submit_requirement", "task", "old", text, expected=0)
    team.workspace.journal.append([draft])
    team.workspace.register([Agent("carol", task="old")])
    carol = team.workspace.tools("carol")
    assert refused(carol, "list_files")["error"] == "invalid_workspace"
    assert refused(carol, "write_file", path="a", content="x")["error"] == "invalid_workspace"
    assert refused(carol, "run_command", command="ls")["error"] == "invalid_workspace"
    assert not Path("/etc/watchroom").exists()


def test_a_folder_is_free_again_when_its_task_ended(team: Team) -> None:
    (task,) = [each for each in team.workspace.tasks.list() if each.folder == str(team.folder.resolve())]
    assert (
        team.workspace.tasks.end(CallContext("human:dana"), task.id, "done", "All is well.").status == "done"
    )
    again = team.workspace.tasks.submit("human:dana", "Go on.", team.folder)
    assert again.status == "open"
    ended = refused(team.one, "write_file", path="a.md", content="x")
    assert ended["error"] == "agent_ended", "its folder is another task's now"
    with pytest.raises(TaskNotFound):
        team.workspace.tasks.find("no-such-task")
