"""Working trees on screen 9: their predicted conflicts, and landings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widgets import Input
from trees.git_repo import ENVIRONMENT, git
from trees.git_repository import Repository
from trees.test_pull_requests import CHECKS, URL, use_programs
from tui.conflict_steps import commits
from tui.driver import WIDE, User, dashboard
from tui.team import has_opened_merge
from tui.test_queue import marks_as_seen
from watchroom import Workspace
from watchroom.features.trees.landing import read_landing
from watchroom.features.trees.recorder import TreeRecorder
from watchroom.features.trees.rows import LAND, PULL_REQUEST
from watchroom_cli.plain.sentences import alert_wording

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = Repository(tmp_path / "project")
    made.commit(a__txt=TEXT)
    made.git("worktree", "add", "--quiet", "-b", "fares", str(tmp_path / "fares"))
    return made


@pytest.fixture
def fares(repository: Repository) -> Path:
    return repository.folder.parent / "fares"


@pytest.fixture
def kept(repository: Repository) -> Iterator[Workspace]:
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        yield workspace


def commit(folder: Path, text: str) -> None:
    (folder / "a.txt").write_text(text)
    git(folder, "commit", "--quiet", "--all", "--message", "work")


async def opens_trees(user: User) -> None:
    await user.goes_to("9", "tasks")
    await user.until(lambda: len(user.list("trees").items) == 2, "both trees")


async def test_conflicts_between_trees_are_shown_while_they_arise(
    kept: Workspace, repository: Repository, fares: Path
) -> None:
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        repository.write("a.txt", TEXT.replace("two", "main"))
        (fares / "a.txt").write_text(TEXT.replace("two", "fares"))
        await user.sees("⚔ 1 ⎇ fares", "⚔ 1 ⎇ main")
        await user.goes_to("4", "files")
        await user.sees("M a.txt")
        await user.until(lambda: sum("⚔" in line for line in user.lines()[1:]) >= 2, "a mark on each file")
        await user.press("down")
        await user.sees("a.txt  with authors", "⚔ ⎇ main: lines 2")


async def test_a_predicted_conflict_is_a_need_that_leads_to_the_tree(
    kept: Workspace, repository: Repository, fares: Path
) -> None:
    repository.write("a.txt", TEXT.replace("two", "main"))
    (fares / "a.txt").write_text(TEXT.replace("two", "fares"))
    await asyncio.to_thread(kept.trees.refresh_all)
    async with dashboard(kept, size=WIDE) as user:
        await user.sees("⎇ fares", "would conflict in a.txt")
        (need,) = user.model.needs
        assert alert_wording("en").describe(need).text == "⎇ fares ⚔ ⎇ main: would conflict in a.txt"
        await user.press("!")
        await user.until(lambda: user.list("trees").has_focus, "the trees")
        item = user.list("trees").item
        assert item is not None
        assert item.tree.branch == "fares"
        await marks_as_seen(user, "would conflict in a.txt")
        await user.until(lambda: not user.model.needs, "no need")


async def test_the_footer_offers_to_remove_a_tree(kept: Workspace, fares: Path) -> None:
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        assert " X " not in user.lines()[-1], "the main tree stays"
        await user.press("down")
        await user.until(lambda: "X remove" in user.lines()[-1], "the key")


async def test_a_tree_lands_with_two_keys(kept: Workspace, repository: Repository, fares: Path) -> None:
    commit(fares, TEXT + "four\n")
    await asyncio.to_thread(kept.trees.refresh_all)
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.press("down", "K")
        await user.is_asked("Land ⎇ fares in main? Changed files: 1.")
        await user.press("enter")
        await user.is_told("has landed in main")
        assert repository.read("a.txt") == TEXT + "four\n"


async def test_conflicts_of_a_landing_are_settled_on_the_merge_screen(
    kept: Workspace, repository: Repository, fares: Path
) -> None:
    commit(fares, TEXT.replace("two", "fares"))
    commit(repository.folder, TEXT.replace("two", "main"))
    await asyncio.to_thread(kept.trees.refresh_all)
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.press("down", "K")
        await user.is_asked("⎇ fares conflicts with main. Files: 1. Settle them now?")
        await user.press("enter")
        await has_opened_merge(user)
        await user.sees("current v2 · main", "incoming · fares")
        await commits(user, "b")
        # The dialog comes without a key.
        await user.is_asked("Land ⎇ fares in main? Changed files: 1.")
        await user.press("enter")
        await user.is_told("has landed in main")
        assert repository.read("a.txt") == "one\nmain\nfares\nthree\n"


def tree_of(workspace: Workspace) -> TreeRecorder:
    return next(each for each in workspace.trees.all() if each.git.git != each.git.common)


async def test_uncommitted_work_can_be_committed_first(
    kept: Workspace, repository: Repository, fares: Path
) -> None:
    (fares / "new.txt").write_text("new\n")
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.press("down", "K")
        await user.sees("Work in fares", "+new")
        await user.press("enter")
        await user.is_asked("Land ⎇ fares in main? Changed files: 1.")
        await user.sees("+new")
        await user.press("enter")
        await user.is_told("has landed in main")
        assert repository.read("new.txt") == "new\n"
        assert repository.git("log", "-1", "--format=%s") == "Work in fares"


async def test_the_checks_of_a_pull_request_are_shown(
    kept: Workspace,
    repository: Repository,
    fares: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "gh")
    remote = tmp_path / "remote.git"
    repository.git("init", "--quiet", "--bare", str(remote))
    url = "https://github.com/acme/app.git"
    repository.git("remote", "add", "origin", url)
    repository.git("config", f"url.{remote}.pushInsteadOf", url)
    commit(fares, TEXT + "four\n")
    await asyncio.to_thread(kept.trees.refresh_all)
    programs.answer("gh create", f"{URL}\n")
    arguments = {"tree": tree_of(kept).id, "into": "main"}
    opened = kept.tools_for_human("dana").dispatch_tool_call(PULL_REQUEST, arguments)
    assert opened["state"] == "opened"
    programs.answer_json("gh view", CHECKS)
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.sees("⎇ fares", "PR open ✖ 2")


async def test_a_landing_has_a_check_and_a_branch(
    kept: Workspace, repository: Repository, fares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository.git("branch", "release")
    commit(fares, TEXT + "four\n")
    await asyncio.to_thread(kept.trees.refresh_all)
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.press("down", "K")
        await user.is_asked("Land ⎇ fares in main?")
        await user.press_at_once(*"echo 2 of 41 failed; false", "enter")
        await user.is_asked("The check failed")
        await user.sees("2 of 41 failed")
        await user.press("escape", "K")
        await user.is_asked("Land ⎇ fares in main?")
        check, into = (user.app.screen.query_one(f"#{name}", Input) for name in ("check", "into"))
        assert check.value == "echo 2 of 41 failed; false", "the last check of this tree"
        check.value, into.value = "true", "nowhere"
        await user.is_asked("nowhere")
        into.value = "rel"
        into.value = "release"
        await user.is_asked("Land ⎇ fares in release?")
        assert check.value == "true", "it is filled once"
        await user.press("enter")
        await user.is_told("has landed in release")
    assert repository.git("rev-parse", "release") == git(fares, "rev-parse", "HEAD")
    assert repository.read("a.txt") == TEXT


async def test_marked_trees_land_in_the_order_of_their_marks(
    kept: Workspace, repository: Repository, fares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gate = tmp_path / "gate"
    for name in ("search", "login"):
        folder = tmp_path / name
        repository.git("worktree", "add", "--quiet", "-b", name, str(folder))
        (folder / f"{name}.txt").write_text(name)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", name)
    commit(fares, TEXT + "four\n")
    kept.trees.look_after()
    await asyncio.to_thread(kept.trees.refresh_all)
    async with dashboard(kept, size=WIDE) as user:
        await user.goes_to("9", "tasks")
        trees = user.list("trees")
        await user.until(lambda: len(trees.items) == 4, "all trees")
        for name in ("search", "fares"):
            trees.move_to(next(each.tree.id for each in trees.items if each.tree.branch == name))
            await user.press("space")
        await user.sees("1 ⎇ search", "2 ⎇ fares")
        await user.press("K")
        await user.is_asked("Land these trees in main, one after the other? Trees: 2.")
        await user.type(f"while [ ! -e {gate} ]; do sleep 0.01; done")
        await user.press("enter")
        await user.sees("● 1/2 landing", "⧗ 2/2")
        trees.move_to(next(each.tree.id for each in trees.items if each.tree.branch == "login"))
        await user.press("K")
        await user.is_asked("Land ⎇ login in main?")
        await user.press("enter")
        await user.sees("⧗ 2/3", "⧗ 3/3")
        gate.touch()
        await user.until(lambda: not any(each.place for each in trees.items), "the end of the queue")
    landed = [read_landing(row) for row in kept.journal.rows(0, limit=1000) if row.tool == LAND]
    names = {each.id: each.git.read_state().branch for each in kept.trees.all()}
    assert [names[each.tree] for each in landed if each.state == "landed"] == ["search", "fares", "login"]


# Trees


async def test_a_tree_is_added_and_removed_with_two_keys(
    kept: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = tmp_path / "project.trees" / "login"
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.press("Y")
        await user.until(lambda: user.place == "AddTreeDialog", "the form")
        await user.press_at_once(*"fares", "enter")
        await user.sees("The working tree 'fares' was not added")
        name = user.app.screen.query_one("#name", Input)
        name.value = "login"
        await user.press("enter")
        await user.is_told("Added working tree login on branch login")
        await user.until(lambda: len(user.list("trees").items) == 3, "the new tree")
        assert (made / "a.txt").read_text() == TEXT
        (made / "new.txt").write_text("new\n")
        trees = user.list("trees")
        trees.move_to(next(each.tree.id for each in trees.items if each.tree.branch == "login"))
        await user.press("X")
        await user.is_asked("Remove working tree login? Its branch login stays")
        await user.sees("Its uncommitted files are in the journal (1): new.txt")
        await user.press("enter")
        await user.is_told("Removed working tree login. Its branch login stays.")
        await user.until(lambda: len(trees.items) == 2, "the trees that are left")
    assert not made.exists()
    assert "login" in repository.git("branch", "--list", "login")


async def test_what_is_in_the_way_of_a_removal_is_shown(
    kept: Workspace, repository: Repository, fares: Path
) -> None:
    repository.git("worktree", "lock", str(fares))
    async with dashboard(kept, size=WIDE) as user:
        await opens_trees(user)
        await user.press("down")
        await user.sees("locked in git")
        await user.press("X")
        await user.is_asked("Working tree fares was not removed:")
        await user.sees("A person has locked it in git.")
        await user.press("enter")
        await user.until(lambda: user.place == "tasks", "the screen")
    assert str(fares) in repository.git("worktree", "list")


async def test_the_states_of_trees_are_words(kept: Workspace, repository: Repository, fares: Path) -> None:
    commit(fares, TEXT.replace("two", "fares"))
    commit(repository.folder, TEXT.replace("two", "main"))
    with pytest.raises(AssertionError):
        git(fares, "rebase", "main")
    async with dashboard(kept, size=WIDE) as user:
        await user.goes_to("9", "tasks")
        await user.sees("main tree", "no branch, rebase in progress")
