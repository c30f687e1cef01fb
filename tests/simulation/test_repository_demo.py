"""The demo in a git repository, played: three things are left for a person, and each of them does what its key
promises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from calls import ok
from simulation.playing import PATIENCE, all_rows, is_whole, states
from trees.git_repo import ENVIRONMENT, git
from watchroom import Toolbox, Workspace
from watchroom.agents.simulation.repository import RepositorySimulation, load_story, make_repository
from watchroom.features.overview.snapshots import read_model
from watchroom.features.sessions.runtime import UserMessage
from watchroom.features.trees.place import workspace_root
from watchroom.features.trees.reads import TreeReader
from watchroom.features.trees.rows import REPO
from watchroom.model import Row
from watchroom.texts import LANGUAGES, Language

SPOILED = [f"timetable/{name}.py" for name in ("clock", "report", "search", "stations", "trains")]
FARES = "timetable/fares.py"
MANUAL_EDIT = 'HEADING = "The next connection"\n'
SEATS = ["README.md", "tests/test_seats.py", "timetable/__main__.py", "timetable/seats.py"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "timetable"


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the person who runs the tests away from git; the demo needs none."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", ENVIRONMENT["GIT_CONFIG_GLOBAL"])
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", ENVIRONMENT["GIT_CONFIG_NOSYSTEM"])


@contextmanager
def kept(folder: Path, language: Language = "en") -> Iterator[Workspace]:
    """The workspace of a new repository of the demo, which this process keeps."""
    make_repository(folder)
    root = workspace_root(str(folder / ".git"))
    with Workspace.open(root, load_story().agents, language=language) as workspace:
        assert workspace.keep()
        yield workspace


@contextmanager
def played(folder: Path, seed: int = 0, language: Language = "en") -> Iterator[Workspace]:
    """The workspace after the story, as a person finds it."""
    with kept(folder, language) as workspace:
        with RepositorySimulation(workspace, str(folder), seed=seed, speed=0) as simulation:
            assert simulation.wait(PATIENCE), "the story does not end"
        assert simulation.errors == ()
        yield workspace


def dana(workspace: Workspace) -> Toolbox:
    return workspace.tools_for_human("dana")


def conflicts(workspace: Workspace) -> list[Row]:
    return [each.row for each in read_model(workspace.journal, workspace.journal.last_seq()).conflicts]


def changes(workspace: Workspace) -> dict[str, set[str]]:
    """The files that differ from HEAD, each with its authors."""
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    found = TreeReader(workspace.journal).list_changes(tree.id)
    return {each.name: {change.author.name for change in each.authors} for each in found}


def versions(workspace: Workspace, name: str) -> list[tuple[str, str]]:
    (tree,) = workspace.trees.all()
    found = workspace.journal.versions(REPO, tree.path(name))
    return [(row.actor, text or "") for row, text in found if row.actor != "system"]


def is_sound(folder: Path) -> bool:
    """Whether the tests of the repository pass."""
    # Python takes a compiled file for that of a source with the same size and second, as the story leaves it.
    compiled = f"pycache_prefix={folder.parent / 'compiled'}"
    command = [sys.executable, "-B", "-X", compiled, "-m", "unittest", "discover", "-q", "tests"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode == 0


def wait_until(workspace: Workspace, holds: Callable[[], bool]) -> None:
    changed = Event()
    end = workspace.subscribe(changed.set)
    while not holds():
        assert changed.wait(PATIENCE)
        changed.clear()
    end()


@pytest.mark.parametrize("seed", range(3))
def test_three_things_are_left_to_do(folder: Path, seed: int) -> None:
    with played(folder, seed) as workspace:
        assert changes(workspace) == {
            "README.md": {"claude1", "claude2"},
            "UNITS.md": {"codex1"},
            "tests/test_fares.py": {"claude2"},
            "tests/test_seats.py": {"claude1"},
            "timetable/__main__.py": {"claude1", "claude2"},
            FARES: {"claude2"},
            "timetable/seats.py": {"claude1"},
            **{name: {"~codex1"} for name in SPOILED},
            "timetable/report.py": {"~codex1", "external"},
        }
        (conflict,) = conflicts(workspace)
        assert (conflict.actor, conflict.path.partition("/")[2]) == ("claude1", FARES)
        assert "3.90" in (workspace.journal.content(conflict.seq) or "")
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert [need.kind for need in model.needs] == ["conflict"]
        assert not is_sound(folder)
        assert workspace.verify() == []


def test_edits_of_two_agents_stay_in_one_file(folder: Path) -> None:
    with played(folder) as workspace:
        line = (folder / "timetable/__main__.py").read_text()
        assert "--seat" in line
        assert "--student" in line
        *_, (last, text) = versions(workspace, "README.md")
        assert last == "claude2"
        assert "## Seats" in text
        assert "Students pay half." in text


def test_it_says_what_is_left_to_do(folder: Path) -> None:
    with kept(folder) as workspace:
        said: list[str] = []
        with RepositorySimulation(workspace, str(folder), speed=0, on_end=said.append) as simulation:
            assert simulation.wait(PATIENCE)
        (text,) = said
        assert all(each in text for each in ("!", "V on codex1", "4 K commits claude1"))
        messages = [row.message for row in all_rows(workspace) if row.tool == "send_message"]
        assert messages == [text]


def test_the_conflict_is_settled_by_a_person(folder: Path) -> None:
    with played(folder) as workspace:
        (conflict,) = conflicts(workspace)
        ok(dana(workspace), "dismiss_conflict", conflict=conflict.seq, message="The fare is enough")
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert (model.conflicts, model.needs) == ((), ())


def test_the_work_of_codex1_is_taken_back(folder: Path) -> None:
    with played(folder) as workspace:
        done = ok(dana(workspace), "revert_work", agents=["codex1"])
        assert len(done["written"]) == len(SPOILED) + 1
        assert (done["conflicts"], done["could_not"]) == ([], [])
        assert not (folder / "UNITS.md").exists()
        left = changes(workspace)
        assert {name: left.get(name) for name in SPOILED if name in left} == {
            "timetable/report.py": {"external"}
        }
        assert MANUAL_EDIT in (folder / "timetable/report.py").read_text()
        assert is_sound(folder)


@pytest.mark.parametrize("is_reverted_first", [False, True])
def test_the_work_of_claude1_is_committed_alone(folder: Path, is_reverted_first: bool) -> None:
    with played(folder) as workspace:
        before = changes(workspace)
        if is_reverted_first:
            ok(dana(workspace), "revert_work", agents=["codex1"])
            before = changes(workspace)
        (tree,) = workspace.trees.all()
        plan = workspace.agent_commits.plan(tree.git, ["claude1"])
        assert (sorted(plan.states), plan.blocked) == (SEATS, ())
        ok(dana(workspace), "commit_agent", tree=tree.id, agents=["claude1"], message="Reserve seats")
        assert git(folder, "log", "-1", "--format=%an: %s") == "claude1: Reserve seats"
        assert "--student" not in git(folder, "show", "HEAD:timetable/__main__.py")
        left = {name: authors - {"claude1"} for name, authors in before.items()}
        assert changes(workspace) == {name: authors for name, authors in left.items() if authors}


@pytest.mark.parametrize("language", LANGUAGES)
def test_sessions_are_whole_and_speak_one_language(folder: Path, language: Language) -> None:
    with played(folder, language=language) as workspace:
        found = {head.agent: head.status for head in workspace.sessions.list()}
        assert found == dict.fromkeys(("claude1", "claude2", "codex1"), "done")
        said = [each for state in states(workspace) for each in state.messages]
        assert all(is_whole(state.messages) for state in states(workspace))
        prompts = [each.content for each in said if isinstance(each, UserMessage)]
        assert len(prompts) == 3
        assert all(text.isascii() == (language == "en") for text in prompts)


def test_claude_reads_what_people_write_when_it_is_idle(folder: Path) -> None:
    with kept(folder) as workspace, RepositorySimulation(workspace, str(folder), speed=0) as simulation:
        assert simulation.wait(PATIENCE)
        dana(workspace).dispatch_tool_call(
            "send_message", {"to": "claude1", "payload": {"text": "Please wait for the fare"}}
        )

        def has_answered() -> bool:
            return any(
                "I have read that." in each.content
                for state in states(workspace, "claude1")
                for each in state.messages
            )

        wait_until(workspace, has_answered)
    assert simulation.errors == ()


def test_others_go_on_when_a_person_ends_an_agent(folder: Path) -> None:
    with kept(folder) as workspace:
        with RepositorySimulation(workspace, str(folder), speed=20) as simulation:
            wait_until(
                workspace,
                lambda: any(row.zone == REPO for row in all_rows(workspace) if row.actor == "claude1"),
            )
            ok(dana(workspace), "cancel_agent", agent_id="claude1")
            assert simulation.wait(PATIENCE)
        assert simulation.errors == ()
        found = {head.agent: head.status for head in workspace.sessions.list()}
        assert found == {"claude1": "cancelled", "claude2": "done", "codex1": "done"}
        assert set(SPOILED) <= set(changes(workspace))


def test_stop_does_not_wait_for_pauses(folder: Path) -> None:
    with kept(folder) as workspace:
        simulation = RepositorySimulation(workspace, str(folder), speed=1e-9)
        simulation.start()
        stopping = Thread(target=simulation.stop)
        stopping.start()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        with pytest.raises(RuntimeError, match="only once"):
            simulation.start()
