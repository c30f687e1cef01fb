"""What git would write into files is read from git processes that stay."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees.git_repository import Repository
from watchroom.features.trees.blob_reader import BlobReader
from watchroom.features.trees.git import GitTree

FILES = {"a.txt": b"one\ntwo\n", "empty": b"", "bin": b"\0\n\n\xff", " odd": b"x\n", "deep/b.txt": b"b\n\n"}


@pytest.fixture
def tree(repository: Repository) -> GitTree:
    for name, data in FILES.items():
        path = repository.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (repository.folder / "link").symlink_to("a.txt")
    repository.commit()
    found = GitTree.find(str(repository.folder))
    assert found is not None
    return found


@pytest.fixture
def reader(tree: GitTree) -> Iterator[BlobReader]:
    made = BlobReader(tree, 1.0)
    yield made
    made.close()


def set_filter(repository: Repository, command: str) -> None:
    repository.write(".gitattributes", "a.txt filter=own\n")
    repository.git("config", "filter.own.smudge", command)


def children() -> set[str]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    return set(listed.read_text().split())


def test_contents_of_all_kinds_are_read_again_and_again(tree: GitTree, reader: BlobReader) -> None:
    for _ in range(3):
        assert reader.read(tree.list_index()) == {**FILES, "b.txt": b"b\n", "link": b"a.txt"}


def test_files_of_a_commit_are_read(repository: Repository, tree: GitTree, reader: BlobReader) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit(a__txt="changed\n", **{"x blob": "x\n"})
    names = [*FILES, "b.txt", "link", "deep", "nowhere", "x blob", "x blob 1"]
    expected = {**dict.fromkeys(names), **FILES, "b.txt": b"b\n", "link": b"a.txt"}
    for _ in range(2):
        assert reader.read_commit(first, names) == expected
    second = repository.git("rev-parse", "HEAD")
    assert reader.read_commit(second, ["a.txt", "x blob"]) == {"a.txt": b"changed\n", "x blob": b"x\n"}
    assert reader.read_commit("0" * 40, ["a.txt"]) == {"a.txt": None}


def test_the_processes_stay_until_they_are_closed(tree: GitTree, reader: BlobReader) -> None:
    before = children()
    entries = {"a.txt": tree.list_index()["a.txt"]}
    reader.read(entries)
    started = children() - before
    reader.read(entries)
    assert (len(started), children() - before) == (2, started)
    reader.close()
    assert children() == before


def test_a_process_that_was_killed_is_replaced(tree: GitTree, reader: BlobReader) -> None:
    before = children()
    entries = {"a.txt": tree.list_index()["a.txt"]}
    reader.read(entries)
    for each in children() - before:
        os.kill(int(each), 9)
    assert reader.read(entries) == reader.read(entries) == {"a.txt": FILES["a.txt"]}


def test_new_settings_apply(repository: Repository, tree: GitTree, reader: BlobReader) -> None:
    entries = {"a.txt": tree.list_index()["a.txt"]}
    assert reader.read(entries) == {"a.txt": b"one\ntwo\n"}
    repository.write(".gitattributes", "*.txt text eol=crlf\n")
    assert reader.read(entries) == {"a.txt": b"one\r\ntwo\r\n"}
    set_filter(repository, "sed s/one/ONE/")
    assert reader.read(entries) == {"a.txt": b"ONE\ntwo\n"}


def test_a_filter_that_fails_is_left_out(repository: Repository, tree: GitTree, reader: BlobReader) -> None:
    entries = tree.list_index()
    set_filter(repository, "false")
    repository.git("config", "filter.own.required", "true")
    found = reader.read(entries)
    assert (found["a.txt"], found["deep/b.txt"]) == (FILES["a.txt"], FILES["deep/b.txt"])


def test_filters_that_are_slow_together_apply(
    repository: Repository, tree: GitTree, reader: BlobReader
) -> None:
    names = [f"{number}.slow" for number in range(12)]
    for name in names:
        repository.write(name, "one\n")
    repository.commit()
    repository.write(".gitattributes", "*.slow filter=own\n")
    repository.git("config", "filter.own.smudge", "sleep 0.1; sed s/one/ONE/")
    index = tree.list_index()
    assert reader.read({name: index[name] for name in names}) == dict.fromkeys(names, b"ONE\n")


def set_hanging_filter(repository: Repository) -> Path:
    """Set a filter for ``a.txt`` that hangs while a file exists. Return this file. Another one beside it has a
    line for each run of the filter. There are other filters for other files."""
    repository.write(".gitattributes", "*.txt eol=crlf\na.txt filter=own\ndeep/b.txt filter=other\n")
    repository.git("config", "filter.other.smudge", "sed s/b/B/")
    stuck = repository.folder.with_name("stuck")
    stuck.touch()
    command = f"echo run >> {stuck}.runs; while [ -e {stuck} ]; do sleep 0.02; done; sed s/one/ONE/"
    repository.git("config", "filter.own.smudge", command)
    repository.git("config", "filter.own.required", "true")
    return stuck


def test_only_the_filter_that_hangs_is_left_out(
    repository: Repository, tree: GitTree, reader: BlobReader
) -> None:
    """A hook would wait for it each time."""
    stuck = set_hanging_filter(repository)
    entries = tree.list_index()
    for _ in range(2):
        found = reader.read(entries)
        assert (found["a.txt"], found["b.txt"]) == (b"one\r\ntwo\r\n", b"b\r\n")
        assert found["deep/b.txt"] == b"B\r\n\r\n"
        # Any change of attributes restarts git.
        reader.restart()
    assert Path(f"{stuck}.runs").read_text() == "run\n"
    repository.git("config", "filter.own.smudge", "sed s/one/one!/")
    assert reader.read(entries)["a.txt"] == b"one!\r\ntwo\r\n"


def test_a_filter_that_hung_is_tried_again(
    repository: Repository, tree: GitTree, reader: BlobReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.features.trees.blob_reader._RETRY_SECONDS", 0.5)
    stuck = set_hanging_filter(repository)
    entries = tree.list_index()
    assert reader.read(entries)["a.txt"] == b"one\r\ntwo\r\n"
    stuck.unlink()
    deadline = time.monotonic() + 30
    while reader.read(entries)["a.txt"] != b"ONE\r\ntwo\r\n":
        assert time.monotonic() < deadline


def test_filters_that_take_long_are_left_out_for_the_rest_of_the_call(
    repository: Repository, tree: GitTree
) -> None:
    set_filter(repository, "sleep 0.1; sed s/one/ONE/")
    repository.write(".gitattributes", "*.txt eol=crlf\n*.txt filter=own\n")
    names = [f"{number:02}.txt" for number in range(40)]
    for name in names:
        repository.write(name, "one\n")
    repository.git("-c", "filter.own.smudge=", "add", ".")
    reader = BlobReader(tree, 30.0, 1.0)
    index = tree.list_index()
    found = reader.read({name: index[name] for name in names})
    assert (found[names[0]], found[names[-1]]) == (b"ONE\r\n", b"one\r\n")
    assert reader.read({names[-1]: index[names[-1]]}) == {names[-1]: b"ONE\r\n"}
    reader.close()


def test_a_filter_that_hangs_after_another_one_fails_is_left_out(
    repository: Repository, tree: GitTree, reader: BlobReader
) -> None:
    stuck = set_hanging_filter(repository)
    repository.git("config", "filter.other.smudge", "false")
    repository.git("config", "filter.other.required", "true")
    found = reader.read(dict(reversed(tree.list_index().items())))
    assert (found["a.txt"], found["deep/b.txt"]) == (b"one\r\ntwo\r\n", FILES["deep/b.txt"])
    assert Path(f"{stuck}.runs").read_text() == "run\n"


def test_a_filter_that_hangs_is_left_out_for_odd_names_too(
    repository: Repository, tree: GitTree, reader: BlobReader
) -> None:
    stuck = set_hanging_filter(repository)
    attributes = repository.folder / ".gitattributes"
    attributes.write_text(attributes.read_text() + "*odd filter=own\n")
    found = reader.read(tree.list_index())
    assert (found["a.txt"], found[" odd"]) == (b"one\r\ntwo\r\n", FILES[" odd"])
    assert Path(f"{stuck}.runs").read_text() == "run\n"


def test_files_without_filters_may_take_longer_than_filters(repository: Repository, tree: GitTree) -> None:
    before = children()
    reader = BlobReader(tree, 30.0, 0.0)
    entries = {"a.txt": tree.list_index()["a.txt"]}
    assert reader.read(entries) == {"a.txt": FILES["a.txt"]}
    assert len(children() - before) == 2, "git has not been given up"
    reader.close()


def test_a_large_file_is_not_read(repository: Repository, reader: BlobReader, tree: GitTree) -> None:
    (repository.folder / "large").write_bytes(b"x" * 11_000_000)
    repository.commit()
    assert reader.read({"large": tree.list_index()["large"]}) == {"large": None}


def test_a_closed_reader_reads_without_a_process(tree: GitTree, reader: BlobReader) -> None:
    """A thread that watches or previews a tree can still use the reader of a removed tree."""
    before = children()
    reader.start()
    reader.close()
    reader.start()
    assert reader.read(tree.list_index())["b.txt"] == b"b\n"
    assert children() == before
