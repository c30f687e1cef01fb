"""Odd states of working trees: each has a word, each refusal says what to do, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from cli.running import Captured, printed_json, run
from trees.git_repo import git
from trees.git_repository import Repository
from trees.test_landing import texts
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.features.trees.rows import PREDICT


class Place(NamedTuple):
    """A repository in which the tree ``login`` is in an odd state."""

    repository: Repository
    folder: Path


def remove_folder(place: Place) -> None:
    shutil.rmtree(place.folder)


def reuse_name(place: Place) -> None:
    """Put another repository into the place of the tree."""
    shutil.rmtree(place.folder)
    Repository(place.folder).commit(own="own\n")


def delete_branch(place: Place) -> None:
    git(place.repository.folder, "update-ref", "-d", "refs/heads/login")


def begin_rebase(place: Place) -> None:
    place.repository.commit(login__txt="main\n")
    with pytest.raises(AssertionError):
        git(place.folder, "rebase", "--quiet", "main")


def lock_index(place: Place) -> None:
    Path(git(place.folder, "rev-parse", "--absolute-git-dir"), "index.lock").touch()


def detach(place: Place) -> None:
    git(place.folder, "checkout", "--quiet", "--detach")


def add_submodule(place: Place) -> None:
    inner = Repository(place.folder.parent.parent / "inner")
    inner.commit(own="own\n")
    allowed = ("-c", "protocol.file.allow=always")
    git(place.folder, *allowed, "submodule", "--quiet", "add", str(inner.folder), "sub")
    git(place.folder, "commit", "--quiet", "--all", "--message", "with a submodule")


def lock(place: Place) -> None:
    git(place.repository.folder, "worktree", "lock", str(place.folder))


class State(NamedTuple):
    """An odd state.

    - ``word``: how the list calls it.
    - ``land``, ``into``, ``remove``, ``add``: what the command says when it refuses; None if it works.
    """

    make: Callable[[Place], object]
    word: str
    land: str | None
    into: str | None
    remove: str | None
    add: str


EXISTS: Final = "a working tree of this name already exists"
STATES: Final = {
    "removed by hand": State(
        remove_folder, "gone", "Unknown working tree", "watchroom tree remove", None, "watchroom tree remove"
    ),
    "name reused": State(
        reuse_name, "replaced", "Unknown working tree", "watchroom tree remove", None, "watchroom tree remove"
    ),
    "branch deleted": State(
        delete_branch, "branch_deleted", "git branch NAME COMMIT", "no such branch", None, EXISTS
    ),
    "rebase": State(
        begin_rebase, "rebase", "finish the open operation", "Finish or abort it", "not finished", EXISTS
    ),
    "index locked": State(lock_index, "index_locked", None, "another git command", "git command", EXISTS),
    "detached": State(detach, "detached", None, None, None, EXISTS),
    "submodule": State(add_submodule, "submodules", None, None, "submodule", EXISTS),
    "locked": State(lock, "locked", None, None, "git worktree unlock", EXISTS),
}


@pytest.fixture
def make(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> Callable[[State], Place]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    monkeypatch.chdir(repository.folder)

    def make(state: State) -> Place:
        for name in ("login", "other"):
            assert run(capsys, "tree", "add", name)[0] == 0
            folder = tmp_path / "project.trees" / name
            (folder / f"{name}.txt").write_text("work\n")
            git(folder, "add", "--all")
            git(folder, "commit", "--quiet", "--message", name)
        place = Place(repository, tmp_path / "project.trees" / "login")
        state.make(place)
        return place

    return make


def snapshot(place: Place) -> list[object]:
    """Return the refs, the stash, and of each tree its files, its index, and the id of its HEAD."""
    repository = place.repository
    common = repository.folder / ".git"
    found: list[object] = [repository.git("for-each-ref"), repository.git("stash", "list")]
    folders = (repository.folder, *sorted(place.folder.parent.iterdir()))
    found += [(str(folder), texts(folder)) for folder in folders]
    for each in (common, *sorted((common / "worktrees").iterdir())):
        index = each / "index"
        digest = sha256(index.read_bytes()).hexdigest() if index.exists() else ""
        found += [each.name, digest, (each / "HEAD").read_text(), sorted(os.listdir(each))]
    return found


def expect(capsys: Captured, place: Place, said: str | None, *command: str) -> None:
    """Run ``command``. If it is refused, it says ``said``, and nothing was changed."""
    before = snapshot(place)
    status, out, errors = run(capsys, *command)
    assert "Traceback" not in out + errors
    if said is None:
        assert (status, errors) == (0, "")
        return
    assert status in (1, 2), (out, errors)
    assert said in errors
    assert errors.count("\n") < 12
    assert snapshot(place) == before


@pytest.fixture(params=STATES, ids=lambda name: name.replace(" ", "-"))
def state(request: pytest.FixtureRequest) -> State:
    return STATES[request.param]


def test_a_list_names_the_state(capsys: Captured, make: Callable[[State], Place], state: State) -> None:
    place = make(state)
    before = snapshot(place)
    found = {each["name"]: each["state"] for each in printed_json(capsys, "tree", "list", "--json")["trees"]}
    assert state.word in found["login"]
    assert found["other"] == []
    assert snapshot(place) == before


def test_a_tree_in_an_odd_state_lands_or_says_what_to_do(
    capsys: Captured, make: Callable[[State], Place], state: State
) -> None:
    place = make(state)
    expect(capsys, place, state.land, "land", "login" if state.word != "detached" else str(place.folder))


def test_the_branch_of_a_tree_in_an_odd_state_is_a_target_or_not(
    capsys: Captured, make: Callable[[State], Place], state: State
) -> None:
    expect(capsys, make(state), state.into, "land", "other", "--into", "login")


def test_a_tree_in_an_odd_state_is_removed_or_kept(
    capsys: Captured, make: Callable[[State], Place], state: State
) -> None:
    expect(capsys, make(state), state.remove, "tree", "remove", "login")


def test_the_name_of_a_tree_in_an_odd_state_is_taken(
    capsys: Captured, make: Callable[[State], Place], state: State
) -> None:
    expect(capsys, make(state), state.add, "tree", "add", "login")


def test_a_tree_in_an_odd_state_stops_no_prediction(
    capsys: Captured, make: Callable[[State], Place], state: State
) -> None:
    place = make(state)
    with Workspace.open(place.repository.root) as workspace:
        assert workspace.keep()
        for folder in (place.repository.folder, place.folder.parent / "other"):
            (folder / "b.txt").write_text(f"by {folder.name}\n")
        workspace.trees.refresh_all()
        for _ in range(5):
            workspace.background.flush()
        rows = [row for row in workspace.journal.rows(0, limit=10_000) if row.tool == PREDICT]
        assert any(row.detail["paths"] == ["b.txt"] for row in rows), [row.detail for row in rows]


# Shallow clones


def test_trees_of_a_shallow_clone(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for text in ("1\n", "2\n"):
        repository.commit(a__txt=text)
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.folder}", str(tmp_path / "shallow"))
    shallow = tmp_path / "shallow"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(shallow)
    assert run(capsys, "tree", "add", "login")[0] == 0
    folder = tmp_path / "shallow.trees" / "login"
    (folder / "new.txt").write_text("new\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "new")
    assert run(capsys, "land", "login")[0] == 0
    assert (shallow / "new.txt").read_text() == "new\n"
    # A branch of an older commit has nothing in common with the shallow history.
    git(shallow, "fetch", "--quiet", "--depth=1", "origin", repository.git("rev-parse", "main~2"))
    git(shallow, "branch", "old", "FETCH_HEAD")
    before = git(shallow, "for-each-ref")
    status, _, said = run(capsys, "land", "login", "--into", "old")
    assert status == 1
    assert "git fetch --unshallow" in said
    assert git(shallow, "for-each-ref") == before
    assert run(capsys, "tree", "remove", "login")[0] == 0
