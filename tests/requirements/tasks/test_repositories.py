"""No command leaves a git repository or changes one: its settings would run outside of the sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final

import pytest
from calls import ok, refused
from requirements.tasks.test_commands import rows_of, wait_for
from tasking import Team, kill_and_miss, machine_sandbox
from watchroom import Agent, Workspace
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.repositories import find_repositories_at

pytestmark = pytest.mark.slow(10)


@contextmanager
def sandboxed(tmp_path: Path, root: Path, name: str) -> Iterator[Team]:
    """A task whose commands run in this kind of sandbox."""
    result = next(each for each in machine_sandbox().results if each.name == name)
    if not result.works:
        pytest.skip(f"{name} does not work here: {result.reason.strip()}")
    with Workspace.open(root, sandbox=SandboxProbe([result], False)) as workspace:
        folder = tmp_path / "one"
        task = workspace.tasks.submit("human:dana", "Build something.", folder)
        workspace.register([Agent("alice", task=task.id), Agent("carol", task=task.id)])
        yield Team(workspace, workspace.tools("alice"), workspace.tools("carol"), folder, folder)


@pytest.fixture(params=["bubblewrap", "landlock"])
def team(request: pytest.FixtureRequest, tmp_path: Path, root: Path) -> Iterator[Team]:
    with sandboxed(tmp_path, root, request.param) as found:
        yield found


@pytest.fixture
def bubblewrap(tmp_path: Path, root: Path) -> Iterator[Team]:
    """Only bubblewrap reserves a folder at the top. Other kinds remove repositories afterwards."""
    with sandboxed(tmp_path, root, "bubblewrap") as found:
        yield found


def repository(path: str, marker: Path, worktree: str = "") -> str:
    """Return a command that creates a repository at ``path``. `git status` in it creates ``marker``."""
    config = f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {marker}; false\n"
    config += f"\tbare = false\n\tworktree = {worktree}\n" if worktree else ""
    return (
        f"mkdir -p {path}/objects {path}/refs && printf 'ref: refs/heads/main\\n' > {path}/HEAD"
        f" && printf '{config}' > {path}/config"
    )


ATTACKS: Final = {
    "at the top": ("", "{at_top}"),
    "deeper": ("sub/deep", "mkdir -p sub/deep; cd sub/deep; {here}"),
    "made elsewhere": ("sub", "mkdir sub; {elsewhere}; mv elsewhere sub/.git"),
    "named by a file": ("sub", "mkdir sub; {elsewhere}; echo 'gitdir: ../elsewhere' > sub/.git"),
    "named by a link": ("sub", "mkdir sub; {elsewhere}; ln -s ../elsewhere sub/.git"),
    "bare": ("bare", "{bare}"),
    "with its files elsewhere": (
        "sub",
        "mkdir sub; {elsewhere}; mv elsewhere/HEAD sub; echo ../elsewhere > sub/commondir",
    ),
    "the folder itself": ("", "{itself}"),
    "in capitals": ("sub", "mkdir sub; cd sub; {here}; mv .git .GIT"),
    "in a closed folder": ("sub", "mkdir sub; cd sub; {here}; chmod 0 .git; chmod 500 ."),
    "where our files are": (".watchroom/tmp", "mkdir -p .watchroom/tmp; cd .watchroom/tmp; {here}"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_whoever_uses_git_in_the_folder_runs_nothing_of_a_commands(
    team: Team, tmp_path: Path, attack: str
) -> None:
    where, command = ATTACKS[attack]
    marker = tmp_path / "marker"
    here = repository(".git", marker)
    made = command.format(
        at_top=here,
        here=here,
        elsewhere=repository("elsewhere", marker),
        bare=repository("bare", marker, worktree="."),
        itself=repository(".", marker, worktree="."),
    )
    result = team.one.dispatch_tool_call("run_command", {"command": f"({made}); echo done"})
    assert result["stdout"] == "done\n"
    if shutil.which("git") and (team.folder / where).exists():
        subprocess.run(["git", "status"], cwd=team.folder / where, capture_output=True, check=False)
    assert not marker.exists()
    assert [each.parts for each in find_repositories_at(str(team.folder))] == []


def test_what_is_moved_away_is_told_and_kept(team: Team, tmp_path: Path) -> None:
    made = f"mkdir sub; cd sub; {repository('.git', tmp_path / 'marker')}; touch a.txt; echo done"
    result = refused(team.one, "run_command", command=made)
    assert (result["error"], result["quarantined"]) == ("repository_refused", ["sub/.git"])
    assert (result["stdout"], result["exitCode"], result["changed"]) == ("done\n", 0, ["sub/a.txt"])
    (row,) = [row for row in rows_of(team, "run_command") if row.error == "repository_refused"]
    assert row.zone == "file"
    assert (row.actor, row.outcome, row.path.partition("/")[2]) == ("alice", "denied", "sub/.git")
    (moved,) = Path(str(row.detail["moved_to"])).iterdir()
    assert "fsmonitor" in (moved / "config").read_text()
    assert (moved / "HEAD.quarantined").exists()
    assert find_repositories_at(str(moved)) == []
    again: dict[str, Any] = team.one.dispatch_tool_call(
        "run_command", {"command": f"cp -r {moved} x; (cd sub; {made})"}
    )
    assert again["error"] == "repository_refused"


def test_on_another_file_system_it_stays_there_and_is_none_any_more(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path.stat().st_dev
    places = [place for place in map(Path, ("/dev/shm", gettempdir())) if place.is_dir()]
    elsewhere = next((place for place in places if place.stat().st_dev != here), None)
    if elsewhere is None:
        pytest.skip("there is no other file system to move something to")
    with TemporaryDirectory(prefix="quarantine-", dir=elsewhere) as folder:
        monkeypatch.setattr(team.workspace.commands, "_quarantine", folder)
        made = repository(".git", tmp_path / "m")
        result = refused(team.one, "run_command", command=f"mkdir s; cd s; {made}")
    assert result["quarantined"] == ["s/.git"]
    assert find_repositories_at(str(team.folder)) == []
    (moved,) = (team.folder / "s").iterdir()
    assert "fsmonitor" in (moved / "config").read_text()


def test_a_copy_in_the_place_of_a_persons_repository_is_moved_away(team: Team, tmp_path: Path) -> None:
    """A command can move a folder that contains a repository."""
    git = team.folder / "vendored" / "lib" / ".git"
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text("[core]\n")
    command = "mv vendored old; mkdir -p vendored/lib; cp -r old/lib/.git vendored/lib/; echo evil >> vendored/lib/.git/config"
    team.one.dispatch_tool_call("run_command", {"command": command})
    (left,) = find_repositories_at(str(team.folder))
    assert team.folder.joinpath(*left.parts, "config").read_text() == "[core]\n"


def test_a_link_to_a_persons_repository_is_not_replaced(team: Team, tmp_path: Path) -> None:
    """Nothing can be mounted over a link, so a command can remove it."""
    git = team.folder / "git"
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (team.folder / ".git").symlink_to("git")
    command = f"rm .git; {repository('.git', tmp_path / 'marker')}; ls"
    team.one.dispatch_tool_call("run_command", {"command": command})
    assert not (git / "config").exists()
    # With Landlock, the link itself cannot be removed.
    assert not (team.folder / ".git").exists() or (team.folder / ".git").is_symlink()


def test_a_command_cannot_begin_one_where_its_folder_is(bubblewrap: Team) -> None:
    for attempt in ("mkdir .git/refs", "echo x > .git/HEAD", "rm -r .git", "mv .git x", "rmdir .git"):
        assert refused(bubblewrap.one, "run_command", command=attempt)["error"] == "command_failed", attempt
    assert not (bubblewrap.folder / ".git").exists()


def test_what_a_person_begins_meanwhile_stays(bubblewrap: Team) -> None:
    os.mkfifo(bubblewrap.folder / "go")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(ok, bubblewrap.one, "run_command", command="echo begun; read line < go")
        wait_for(bubblewrap, "command_output")
        (bubblewrap.folder / ".git" / "refs").mkdir(parents=True)
        (bubblewrap.folder / "go").write_text("now\n")
        running.result(30)
    assert (bubblewrap.folder / ".git" / "refs").is_dir()


def test_the_place_is_held_as_long_as_any_command_runs(bubblewrap: Team) -> None:
    os.mkfifo(bubblewrap.folder / "go")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(
            bubblewrap.one.dispatch_tool_call,
            "run_command",
            {"command": "echo begun; read line < go; mkdir -p .git/refs"},
        )
        wait_for(bubblewrap, "command_output")
        ok(bubblewrap.other, "run_command", command="true")
        assert (bubblewrap.folder / ".git").is_dir()
        (bubblewrap.folder / "go").write_text("now\n")
        assert "Read-only" in str(running.result(30)["stderr"])
    assert not (bubblewrap.folder / ".git").exists()


def test_what_was_made_by_a_command_that_was_cut_off_is_moved_away_by_the_next(
    team: Team, tmp_path: Path, root: Path
) -> None:
    os.mkfifo(team.folder / "made")
    command = f"mkdir sub; cd sub; {repository('.git', tmp_path / 'marker')}; echo > ../made; sleep 600"
    name = team.workspace.commands.sandbox.results[0].name
    program = f"""
from watchroom import Workspace
from watchroom.platform.sandbox.probe import SandboxProbe
results = [result for result in SandboxProbe.run().results if result.name == {name!r}]
with Workspace.open({str(root)!r}, scan=False, sandbox=SandboxProbe(results, False)) as workspace:
    workspace.tools("alice").dispatch_tool_call("run_command", {{"command": {command!r}}})
"""
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        (team.folder / "made").read_text()
        kill_and_miss(process, team.workspace.journal)
    assert [each.parts for each in find_repositories_at(str(team.folder))][-1:] == [("sub", ".git")]
    ok(team.one, "run_command", command="true")
    assert find_repositories_at(str(team.folder)) == []
    (row,) = [row for row in rows_of(team, "run_command") if row.error == "repository_refused"]
    assert row.actor == "alice"
