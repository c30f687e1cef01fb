"""Landings of odd files, with odd settings, and with hooks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pytest
from trees.git_repo import git
from trees.git_repository import Repository
from trees.test_landing import TEXT, Tree, everything, land, status, texts
from watchroom import Workspace
from watchroom.errors import GitError, TargetChanged

FAILING_HOOK: Final = "#!/bin/sh\ntouch {mark}\nexit 1\n"


@pytest.fixture
def work(repository: Repository) -> Tree:
    return Tree(repository, "work")


def names(folder: Path) -> dict[str, str]:
    """Return all files and links in ``folder`` with their kind, mode and content, without git's."""
    found = {}
    for each in folder.rglob("*"):
        if ".git" in each.parts or (each.is_dir() and not each.is_symlink()):
            continue
        if each.is_symlink():
            found[str(each.relative_to(folder))] = f"link {os.readlink(each)}"
        else:
            found[str(each.relative_to(folder))] = f"{each.stat().st_mode & 0o100:o} {each.read_bytes()!r}"
    return found


# Files


@pytest.mark.parametrize(
    "name",
    [
        "new\nline.txt",
        "end\r",
        '"quoted"',
        '"half',
        "-x",
        "--stdin",
        "..x",
        "a..b",
        " lead",
        "tab\t",
        "back\\slash",
        ":(top)x",
        "*",
        "e\u0301.txt",
        "\udcff.txt",
    ],
)
def test_any_name_lands(kept: Workspace, repository: Repository, work: Tree, name: str) -> None:
    repository.write(name, TEXT)
    repository.commit()
    git(work.folder, "merge", "--quiet", "main")
    for each in (name, f"folder/{name}", f"{name}-new"):
        (work.folder / each).parent.mkdir(exist_ok=True)
        (work.folder / each).write_text(TEXT.replace("one", "ONE"))
    work.commit()
    repository.write(name, TEXT.replace("five", "FIVE"))
    repository.commit()
    record = land(kept, work)
    assert (record.state, record.paths) == ("landed", ())
    assert repository.read(name) == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert names(repository.folder).keys() == names(work.folder).keys()
    assert status(repository.folder) == ""


@pytest.mark.parametrize("kind", ["link", "folder", "mode", "empty"])
def test_a_file_that_becomes_something_else_lands_and_back(
    kept: Workspace, repository: Repository, work: Tree, kind: str
) -> None:
    place = work.folder / "a.txt"

    def become(kind: str) -> None:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        if kind == "link":
            place.symlink_to("b.txt")
        elif kind == "folder":
            place.mkdir()
            (place / "inner.txt").write_text("inner\n")
        else:
            place.write_text("" if kind == "empty" else TEXT)
            place.chmod(0o755 if kind == "mode" else 0o644)

    for number, each in enumerate((kind, "file", kind)):
        become(each)
        work.commit(other__txt=f"{number}\n")
        record = land(kept, work)
        assert record.paths == ()
        assert names(repository.folder) == names(work.folder)
        assert status(repository.folder) == ""


def test_a_rename_takes_the_changes_of_the_target(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    git(work.folder, "mv", "a.txt", "moved.txt")
    work.commit()
    repository.write("a.txt", TEXT.replace("three", "by main"))
    repository.commit()
    assert land(kept, work).state == "landed"
    assert texts(repository.folder) == {"moved.txt": TEXT.replace("three", "by main"), "b.txt": "b\n"}
    assert status(repository.folder) == ""


@pytest.mark.parametrize("setting", ["true", "input", "false"])
@pytest.mark.parametrize("attributes", ["", "* text=auto\n", "*.txt text eol=crlf\n", "* -text\n"])
def test_line_ends_are_those_that_git_writes(
    kept: Workspace, repository: Repository, work: Tree, setting: str, attributes: str
) -> None:
    repository.write("crlf.txt", TEXT.replace("\n", "\r\n"))
    repository.git("-c", "core.autocrlf=false", "add", "--all")
    repository.git("commit", "--quiet", "--message", "with line ends")
    if attributes:
        repository.write(".gitattributes", attributes)
        repository.git("add", "--renormalize", "--all")
        repository.commit()
    git(work.folder, "merge", "--quiet", "main")
    repository.git("config", "core.autocrlf", setting)
    for folder in (repository.folder, work.folder):
        git(folder, "rm", "--quiet", "--cached", "-r", ".")
        git(folder, "reset", "--quiet", "--hard")
        assert status(folder) == ""
    for name in ("a.txt", "crlf.txt"):
        data = (work.folder / name).read_bytes()
        (work.folder / name).write_bytes(data.replace(b"three", b"by work"))
    git(work.folder, "commit", "--quiet", "--all", "--message", "changed")
    record = land(kept, work)
    assert (record.state, record.paths) == ("landed", ())
    assert texts(repository.folder) == texts(work.folder)
    assert status(repository.folder) == ""


@pytest.mark.real
def test_a_large_file_lands(kept: Workspace, repository: Repository, work: Tree) -> None:
    large = work.folder / "large.bin"
    large.write_bytes(os.urandom(1024) * 1024 * 100)
    work.commit()
    assert land(kept, work).state == "landed"
    assert (repository.folder / "large.bin").read_bytes() == large.read_bytes()
    large.write_bytes(os.urandom(1024) * 1024 * 100)
    work.commit()
    (repository.folder / "large.bin").write_bytes(b"by hand")
    with pytest.raises(TargetChanged):
        land(kept, work)
    assert (repository.folder / "large.bin").read_bytes() == b"by hand"


# What is in the way in the target


def test_ignored_files_in_the_target_are_not_overwritten(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    (repository.folder / ".git" / "info" / "exclude").write_text(".env\n")
    repository.write(".env", "KEY=1\n")
    (work.folder / ".env").write_text("KEY=example\n")
    git(work.folder, "add", "--force", ".env")
    work.commit(new__txt="new\n")
    before = everything(repository, work)
    with pytest.raises(TargetChanged, match=r"\.env"):
        land(kept, work)
    assert everything(repository, work) == before


@pytest.mark.parametrize("kind", ["repository", "folder", "file"])
def test_what_is_in_the_place_of_a_new_file_is_in_the_way(
    kept: Workspace, repository: Repository, work: Tree, kind: str
) -> None:
    place = repository.folder / "new"
    if kind == "repository":
        Repository(place).commit(own="own\n")
    elif kind == "folder":
        (repository.folder / ".git" / "info" / "exclude").write_text("build\n")
        repository.write("new/build", "own\n")
    else:
        repository.write("new", "own\n")
    if kind == "file":
        (work.folder / "new").mkdir()
        (work.folder / "new" / "inner.txt").write_text("work\n")
    else:
        (work.folder / "new").write_text("work\n")
    work.commit(other__txt="other\n")
    before = everything(repository, work), names(place) if place.is_dir() else place.read_text()
    with pytest.raises(TargetChanged, match="new"):
        land(kept, work)
    assert (everything(repository, work), names(place) if place.is_dir() else place.read_text()) == before


# Hooks


@pytest.mark.parametrize(
    "hook",
    [
        "pre-commit",
        "pre-merge-commit",
        "reference-transaction",
        "post-checkout",
        "post-index-change",
        "commit-msg",
        "post-merge",
    ],
)
def test_hooks_are_not_run(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path, hook: str
) -> None:
    work.commit(a__txt=TEXT.replace("one", "ONE"))
    repository.commit(b__txt="more\n")
    place, mark = repository.folder / ".git" / "hooks" / hook, tmp_path / "mark"
    place.write_text(FAILING_HOOK.format(mark=mark))
    place.chmod(0o755)
    assert land(kept, work, check=["true"], cache=str(tmp_path / "cache")).state == "landed"
    assert not mark.exists()
    assert status(repository.folder) == ""


# What git compares


def test_files_with_new_times_are_written(kept: Workspace, repository: Repository, work: Tree) -> None:
    work.commit(a__txt=TEXT + "six\n", b__txt=None)
    for name in ("a.txt", "b.txt"):
        os.utime(repository.folder / name, (1, 1))
    record = land(kept, work)
    assert (record.state, record.paths) == ("landed", ())
    assert texts(repository.folder) == texts(work.folder)
    assert status(repository.folder) == ""


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("is_changed", [False, True])
def test_files_that_git_overlooks_are_not_overwritten(
    kept: Workspace, repository: Repository, work: Tree, mark: str, is_changed: bool
) -> None:
    work.commit(a__txt=TEXT + "six\n")
    repository.git("update-index", mark, "a.txt")
    if not is_changed:
        assert land(kept, work).state == "landed"
        assert repository.read("a.txt") == TEXT + "six\n"
        return
    repository.write("a.txt", "by hand\n")
    with pytest.raises(TargetChanged, match=r"a\.txt"):
        land(kept, work)
    assert repository.read("a.txt") == "by hand\n"


def test_a_staged_file_in_the_place_of_a_new_folder_is_in_the_way(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    (work.folder / "new").mkdir()
    (work.folder / "new" / "inner.txt").write_text("work\n")
    work.commit()
    repository.write("new", "staged\n")
    repository.git("add", "new")
    (repository.folder / "new").unlink()
    before = everything(repository, work)
    with pytest.raises(TargetChanged, match="new"):
        land(kept, work)
    assert everything(repository, work) == before


def test_a_sparse_checkout_gets_no_more_files(kept: Workspace, repository: Repository, work: Tree) -> None:
    repository.commit(**{"in/x__txt": "x\n", "out/y__txt": "y\n"})
    git(work.folder, "merge", "--quiet", "main")
    repository.git("sparse-checkout", "set", "in")
    assert not (repository.folder / "out").exists()
    for name in ("in/x.txt", "out/y.txt", "out/new.txt"):
        (work.folder / name).write_text("by work\n")
    work.commit()
    record = land(kept, work)
    assert (record.state, record.paths) == ("landed", ())
    assert repository.read("in/x.txt") == "by work\n"
    assert not (repository.folder / "out").exists()
    assert status(repository.folder) == ""
    assert repository.git("rev-parse", "main^{tree}") == git(work.folder, "rev-parse", "HEAD^{tree}")


# Settings


@pytest.mark.parametrize(
    "setting",
    [
        "core.splitIndex=true",
        "index.version=4",
        "index.threads=true",
        "core.untrackedCache=true",
        "core.fsmonitor=true",
        "core.fileMode=false",
        "core.symlinks=false",
        "core.ignoreCase=true",
        "core.safecrlf=true",
        "core.logAllRefUpdates=false",
        "core.sharedRepository=group",
        "core.checkStat=minimal",
        "core.quotePath=true",
        "core.abbrev=4",
        "status.showUntrackedFiles=no",
        "status.relativePaths=true",
        "diff.external=false",
        "diff.noprefix=true",
        "diff.ignoreSubmodules=all",
        "merge.ff=only",
        "merge.default=union",
        "commit.gpgSign=true",
        "submodule.recurse=true",
        "feature.manyFiles=true",
        "receive.denyCurrentBranch=refuse",
    ],
)
def test_settings_of_the_repository_change_nothing(
    kept: Workspace, repository: Repository, work: Tree, setting: str
) -> None:
    name, _, value = setting.partition("=")
    (work.folder / "e\u0301.txt").write_text("new\n")
    work.commit(a__txt=TEXT.replace("one", "ONE"), b__txt=None)
    repository.commit(a__txt=TEXT.replace("five", "FIVE"))
    repository.write("untracked.txt", "by hand\n")
    repository.git("config", name, value)
    repository.git("update-index", "--refresh")
    record = land(kept, work)
    assert (record.state, record.paths) == ("landed", ())
    repository.git("config", "--unset", name)
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert texts(repository.folder).keys() == {"a.txt", "e\u0301.txt", "untracked.txt"}
    assert status(repository.folder).splitlines() == ["?? untracked.txt"]
    git(repository.folder, "fsck", "--strict")


@pytest.mark.parametrize("recurses", ["true", "false"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_submodule_lands_as_the_commit_it_is_at(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path, recurses: str, is_there: bool
) -> None:
    inner = Repository(tmp_path / "inner")
    inner.commit(own="1\n")
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "--quiet", "add", str(inner.folder), "sub")
    repository.commit()
    if not is_there:
        repository.git("submodule", "--quiet", "deinit", "--all")
    git(work.folder, "merge", "--quiet", "main")
    inner.commit(own="2\n")
    new = inner.git("rev-parse", "HEAD")
    git(work.folder, "update-index", "--cacheinfo", f"160000,{new},sub")
    (work.folder / "a.txt").write_text(TEXT + "six\n")
    git(work.folder, "add", "a.txt")
    git(work.folder, "commit", "--quiet", "--message", "newer")
    repository.git("config", "submodule.recurse", recurses)
    assert land(kept, work, check=["test", "-e", "a.txt"], cache=str(tmp_path / "cache")).state == "landed"
    repository.git("config", "--unset", "submodule.recurse")
    assert repository.read("a.txt") == TEXT + "six\n"
    assert repository.git("rev-parse", "main:sub") == new
    assert (repository.folder / "sub" / "own").exists() == is_there, "git leaves submodules alone"
    assert status(repository.folder) == (" M sub" if is_there else "")


def test_a_conflicted_index_in_the_target_is_in_the_way(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.write("b.txt", "stashed\n")
    repository.git("stash")
    repository.commit(b__txt="committed\n")
    with pytest.raises(AssertionError):
        repository.git("stash", "pop")
    work.commit(a__txt=TEXT + "six\n")
    before = everything(repository, work)
    with pytest.raises(GitError, match="resolve your current index first"):
        land(kept, work)
    assert everything(repository, work) == before
    assert repository.git("stash", "list").count("\n") == 0


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_landing_whose_files_cannot_be_written_changes_nothing(
    kept: Workspace, repository: Repository, work: Tree, is_sparse: bool
) -> None:
    repository.commit(__gitattributes="*.zz filter=secret\n", d="file\n", **{"c/old__txt": "old\n"})
    git(work.folder, "merge", "--quiet", "main")
    if is_sparse:
        repository.git("sparse-checkout", "set", "--no-cone", "/*", "!/c/")
    (work.folder / "c" / "old.txt").unlink()
    (work.folder / "c").rmdir()
    (work.folder / "c").symlink_to("d")
    (work.folder / "d").unlink()
    for name in ("d", "e"):
        (work.folder / name).mkdir()
    (work.folder / "a.txt").chmod(0o755)
    work.commit(b__txt=None, **{"d/new__txt": "new\n", "e/new__txt": "new\n", "z__zz": "secret\n"})
    for setting in ("clean", "smudge"):
        repository.git("config", f"filter.secret.{setting}", "no-such-program")
    repository.git("config", "filter.secret.required", "true")
    before, files = everything(repository), names(repository.folder)
    for _ in range(2):
        with pytest.raises(GitError, match="no-such-program"):
            land(kept, work)
        assert names(repository.folder) == files
        assert everything(repository) == before
    repository.git("config", "--remove-section", "filter.secret")
    assert land(kept, work).state == "landed"
    assert status(repository.folder) == ""
    if not is_sparse:
        assert names(repository.folder) == names(work.folder)
