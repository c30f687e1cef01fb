"""Seals on a branch of a git repository: what is written there, what is left alone, and what somebody who
owns the journal and its machine's key cannot make unseen by it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from watchroom import Workspace
from watchroom.errors import GitError, InvalidRepository
from watchroom.history.git import SealBranch
from watchroom.history.seal import SealReport
from watchroom.history.seal.anchors import state_folder

from seal.sealed import notes, tamper

NEVER = Event()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A work tree with one commit, one staged file and one that is not."""
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "kept.txt").write_text("kept\n")
    git(path, "add", ".")
    git(path, "-c", "user.name=d", "-c", "user.email=d@example.org", "commit", "--quiet", "-m", "First")
    (path / "staged.txt").write_text("staged\n")
    git(path, "add", "staged.txt")
    (path / "loose.txt").write_text("loose\n")
    return path


@pytest.fixture
def team(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose seals are all published in `repository`."""
    monkeypatch.setattr("watchroom.history.seal.publisher.PUBLISH_SECONDS", 0)
    with opened(tmp_path / "team", repository) as workspace:
        yield workspace


def opened(path: Path, repository: Path) -> Workspace:
    workspace = Workspace.open(path, agents=["alice"])
    workspace.sealing.publish_to("", SealBranch(str(repository)))
    return workspace


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=path, capture_output=True, check=True, text=True)
    return done.stdout


def seal(workspace: Workspace, rows: int = 5) -> int:
    """The last row that a seal of all rows covers."""
    workspace.journal.append(notes(rows))
    assert workspace.sealing.write_due(NEVER, at_once=True)
    sealed = workspace.sealing.newest()
    assert sealed is not None
    return sealed.seal.seq


def shown(report: SealReport) -> list[tuple[str, int, int, str]]:
    return [(each.kind, each.after, each.until, each.anchor.kind) for each in report.findings if each.anchor]


def forget(workspace: Workspace) -> None:
    """What whoever runs as this user may delete: all that is kept in the state folder."""
    shutil.rmtree(state_folder())
    (Path(workspace.root) / ".watchroom/derived.db").unlink(missing_ok=True)


def test_each_seal_becomes_a_commit_and_nothing_else_is_touched(team: Workspace, repository: Path) -> None:
    before = git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")
    first, second = seal(team), seal(team)
    newest = team.sealing.newest()
    assert newest is not None
    subjects = git(repository, "log", "--format=%s", "watchroom-seal").splitlines()
    report = team.sealing.verify()
    assert subjects[0] == f"Seal {report.workspace} to row {second}: {newest.seal.short}"
    assert [each.split()[4] for each in subjects] == [f"{second}:", f"{first}:"]
    assert git(repository, "ls-tree", "--name-only", "watchroom-seal").split() == [f"{report.workspace}.txt"]
    assert (git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")) == before
    assert [each.signed.seal.seq for each in report.anchors if each.kind == "git"] == [second]
    assert (report.findings, report.missing) == ((), ())


def test_two_workspaces_share_a_branch(team: Workspace, repository: Path, tmp_path: Path) -> None:
    seal(team)
    with opened(tmp_path / "other", repository) as other:
        seal(other)
        assert other.sealing.verify().missing == ()
    assert len(git(repository, "ls-tree", "--name-only", "watchroom-seal").split()) == 2
    assert team.sealing.verify().missing == ()


def test_a_tail_cut_and_written_and_sealed_anew_by_the_same_user_is_found_by_git(
    team: Workspace, repository: Path
) -> None:
    first, second = seal(team), seal(team)
    forget(team)
    tamper(Path(team.root, ".watchroom/journal.db"), f"DELETE FROM rows WHERE seq>{first + 1}")
    with Workspace.open(team.root) as forger:
        forger.journal.append(notes(20, "forged"))
        assert forger.sealing.write_due(NEVER, at_once=True)
        assert forger.sealing.verify().findings == ()
    with opened(Path(team.root), repository) as later:
        assert shown(later.sealing.verify()) == [("forked", first, second, "git")]
        # Nobody puts what was forged upon what was published.
        published = git(repository, "rev-parse", "watchroom-seal")
        later.journal.append(notes(1))
        assert later.sealing.write_due(NEVER, at_once=True)
        assert git(repository, "rev-parse", "watchroom-seal") == published


def test_a_row_that_was_changed_is_found_between_two_published_seals(team: Workspace) -> None:
    first, second, _ = seal(team), seal(team), seal(team)
    forget(team)
    tamper(
        Path(team.root, ".watchroom/journal.db"),
        f"UPDATE rows SET path='other.md' WHERE seq={second}",
        "DELETE FROM rows WHERE tool='journal_checkpoint' AND seq>" + str(first + 1),
    )
    team.journal.append(notes(20))
    assert shown(team.sealing.verify()) == [("forked", first, second, "git")]


def test_a_journal_that_was_cut_is_found_by_git(team: Workspace, repository: Path) -> None:
    first, second = seal(team), seal(team)
    forget(team)
    tamper(Path(team.root, ".watchroom/journal.db"), f"DELETE FROM rows WHERE seq>{first + 1}")
    assert shown(team.sealing.verify()) == [("truncated", first, second, "git")]


def test_a_branch_that_was_deleted_is_told(team: Workspace, repository: Path) -> None:
    seal(team)
    git(repository, "update-ref", "-d", "refs/heads/watchroom-seal")
    assert team.sealing.verify().missing == (f"{repository} (watchroom-seal)",)
    shutil.rmtree(repository)
    assert team.sealing.verify().missing == (f"{repository} (watchroom-seal)",)
    with pytest.raises(InvalidRepository):
        team.sealing.verify(against=SealBranch(str(repository)))


def test_a_linked_work_tree_and_a_bare_repository_will_do(
    team: Workspace, repository: Path, tmp_path: Path
) -> None:
    seal(team)
    (checkpoint,) = SealBranch(str(repository)).read(team.sealing.verify().workspace)
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"), "-b", "side")
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    for path in (tmp_path / "linked", tmp_path / "bare.git"):
        branch = SealBranch(str(path), "seals")
        branch.add(checkpoint)
        assert branch.read(checkpoint.seal.workspace) == [checkpoint]
    assert git(repository, "log", "--format=%s", "seals")


def test_a_branch_that_somebody_uses_is_left_alone_and_the_journal_goes_on(
    team: Workspace, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seal(team)
    (checkpoint,) = SealBranch(str(repository)).read(team.sealing.verify().workspace)
    git(repository, "branch", "work", "main")
    for name in ("main", "work", "no..branch"):
        with pytest.raises(GitError):
            SealBranch(str(repository), name).add(checkpoint)
    git(repository, "worktree", "add", "--quiet", str(repository.parent / "seals"), "watchroom-seal")
    published = git(repository, "rev-parse", "watchroom-seal")
    seal(team)
    seal(team)
    assert git(repository, "rev-parse", "watchroom-seal") == published
    (told,) = (each for each in caplog.messages if "no seal was published" in each)
    assert "the branch is checked out" in told


def test_what_is_no_seal_on_the_branch_is_left_out(team: Workspace, repository: Path) -> None:
    seal(team)
    workspace = team.sealing.verify().workspace
    branch = SealBranch(str(repository))
    (checkpoint,) = branch.read(workspace)
    for content in ("no checkpoint", "x" * 1_000_000):
        git(repository, "checkout", "--quiet", "watchroom-seal")
        (repository / f"{workspace}.txt").write_text(content)
        git(
            repository,
            "-c",
            "user.name=d",
            "-c",
            "user.email=d@example.org",
            "commit",
            "--quiet",
            "-am",
            "Spoil",
        )
        git(repository, "checkout", "--quiet", "main")
    assert branch.read(workspace) == [checkpoint]
    assert branch.newest(workspace) is None
