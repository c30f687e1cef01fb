"""Linux reports every change below watched folders, and a barrier tells when all of them have been read."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random

import pytest
from effort import rounds, seeds
from watchroom.platform import Platform, TreeChanges, TreeWatch
from watchroom.platform.linux import LinuxPlatform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")

PATIENCE = 30
MAX_QUEUED = Path("/proc/sys/fs/inotify/max_queued_events")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def watch(root: Path) -> Iterator[TreeWatch]:
    with closing(LinuxPlatform().watch_tree([str(root)])) as opened:
        yield opened


def waited(watch: TreeWatch, seconds: float) -> TreeChanges:
    """Wait for a change, and return the changes so far."""
    watch.wait(seconds)
    return watch.take()


def changes(watch: TreeWatch, root: Path) -> TreeChanges:
    """What changed so far: paths relative to the root."""
    assert watch.barrier(str(root), PATIENCE)
    found = waited(watch, 0)
    return TreeChanges({each.removeprefix(f"{root}/") for each in found.paths}, found.is_complete)


State = Mapping[str, tuple[object, ...]]


def state(root: Path) -> State:
    """What can differ of each file and folder, by its path relative to the root."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            at = os.lstat(path)
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            content = "" if is_folder else (at.st_size, at.st_mtime_ns, at.st_ino)
            found[os.path.relpath(path, root)] = (at.st_mode, content)
    return found


def differing(before: State, after: State) -> set[str]:
    return {each for each in {*before, *after} if before.get(each) != after.get(each)}


def test_other_systems_watch_no_folders(root: Path) -> None:
    assert Platform().watch_tree([str(root)]) is None


def test_writes_modes_links_and_removals_are_reported(watch: TreeWatch, root: Path) -> None:
    (root / "a").write_text("1")
    assert changes(watch, root) == ({"a"}, True)
    (root / "a").chmod(0o600)
    assert changes(watch, root) == ({"a"}, True)
    (root / "b").symlink_to("/etc")
    assert changes(watch, root) == ({"b"}, True)
    (root / "c").write_text("2")
    os.replace(root / "c", root / "a")
    assert changes(watch, root) == ({"a", "c"}, True)
    (root / "a").unlink()
    assert changes(watch, root) == ({"a"}, True)
    os.listdir(root)
    (root / "b").lstat()
    assert changes(watch, root) == (set(), True)


def test_a_write_is_reported_for_the_name_by_which_the_file_was_opened(watch: TreeWatch, root: Path) -> None:
    (root / "a").write_text("1")
    changes(watch, root)
    (root / "b").hardlink_to(root / "a")
    assert changes(watch, root) == ({"b"}, True)
    (root / "b").write_text("2")
    assert changes(watch, root) == ({"b"}, True)


def test_folders_that_are_made_and_filled_at_once_are_reported_with_their_files(
    watch: TreeWatch, root: Path
) -> None:
    made = [f"{top}/{'/'.join('abcdefgh')}" for top in range(30)]
    # Another process, so that folders are found while they are filled.
    subprocess.run(
        ["sh", "-c", 'for each; do mkdir -p "$each"; echo 1 > "$each/file"; done', "sh", *made],
        cwd=root,
        check=True,
    )
    found = changes(watch, root)
    assert found.is_complete
    assert {f"{each}/file" for each in made} <= found.paths
    (root / made[-1] / "file").write_text("2")
    assert changes(watch, root).paths == {f"{made[-1]}/file"}


def test_a_very_deep_folder_is_watched(watch: TreeWatch, root: Path) -> None:
    deep = "/".join(["d"] * 1050)
    os.makedirs(root / "d")
    subprocess.run(["mkdir", "-p", deep], cwd=root, check=True)
    assert deep in changes(watch, root).paths
    (root / deep / "file").write_text("1")
    assert f"{deep}/file" in changes(watch, root).paths
    (root / "d").rename(root / "e")
    assert f"{deep}/file" in changes(watch, root).paths


def test_files_of_a_renamed_folder_are_reported_at_both_places(watch: TreeWatch, root: Path) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("1")
    changes(watch, root)
    (root / "a").rename(root / "c")
    found = changes(watch, root)
    assert found.is_complete
    assert {"a/b/file", "c/b/file"} <= found.paths
    (root / "c/b/file").write_text("2")
    assert changes(watch, root).paths == {"c/b/file"}


def test_exchanged_files_are_known_when_their_folder_is_renamed(watch: TreeWatch, root: Path) -> None:
    (root / "a").mkdir()
    for name in ("one", "other"):
        (root / "a" / name).write_text(name)
    changes(watch, root)
    folder = os.open(root / "a", os.O_RDONLY)
    exchanged = LinuxPlatform().exchange(folder, "one", folder, "other")
    os.close(folder)
    if not exchanged:
        pytest.skip("the file system cannot exchange files")
    assert changes(watch, root) == ({"a/one", "a/other"}, True)
    (root / "a").rename(root / "b")
    assert {"a/one", "a/other"} <= changes(watch, root).paths


def test_files_of_a_folder_that_leaves_are_reported_and_later_changes_are_not(
    watch: TreeWatch, root: Path
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("1")
    changes(watch, root)
    (root / "a").rename(root.parent / "outside")
    assert "a/b/file" in changes(watch, root).paths
    (root.parent / "outside/b/file").write_text("2")
    assert changes(watch, root).paths == set()
    (root.parent / "outside").rename(root / "back")
    assert "back/b/file" in changes(watch, root).paths


def test_a_folder_that_moved_into_a_new_one_is_watched_there(watch: TreeWatch, root: Path) -> None:
    (root / "a").mkdir()
    (root / "a/file").write_text("1")
    changes(watch, root)
    # The listing of the new folder shows what events tell later.
    (root / "new").mkdir()
    (root / "a").rename(root / "new/a")
    (root / "a").mkdir()
    (root / "a/other").write_text("1")
    assert {"a/file", "new/a/file", "a/other"} <= changes(watch, root).paths
    (root / "new/a/file").write_text("2")
    (root / "a/other").write_text("2")
    assert changes(watch, root).paths == {"new/a/file", "a/other"}


def test_the_files_of_an_archive_are_reported(watch: TreeWatch, root: Path) -> None:
    source = root.parent / "source"
    for number in range(40):
        (source / f"{number % 7}/{number}").mkdir(parents=True)
        (source / f"{number % 7}/{number}/file").write_text("1")
    with tarfile.open(root.parent / "archive.tar", "w") as archive:
        archive.add(source, "x")
    subprocess.run(["tar", "xf", "../archive.tar"], cwd=root, check=True)
    assert state(root).keys() <= changes(watch, root).paths


def test_a_removed_folder_is_watched_again(watch: TreeWatch, root: Path) -> None:
    for _ in range(3):
        (root / "a").mkdir()
        (root / "a/file").write_text("1")
        assert "a/file" in changes(watch, root).paths
        shutil.rmtree(root / "a")
        assert {"a", "a/file"} <= changes(watch, root).paths


def test_a_linked_folder_is_not_followed(watch: TreeWatch, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    assert changes(watch, root).paths == {"link"}
    (outside / "file").write_text("1")
    assert changes(watch, root).paths == set()
    (root / "link").unlink()
    outside.rename(root / "link")
    assert {"link", "link/file"} <= changes(watch, root).paths


def next_changes(watch: TreeWatch, path: Path) -> bool:
    """Wait until ``path`` is reported. Return whether all changes until then were complete."""
    is_complete = True
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = waited(watch, PATIENCE)
        is_complete = is_complete and found.is_complete
        if str(path) in found.paths:
            return is_complete
    raise TimeoutError(path)


@pytest.mark.parametrize("is_held", [False, True], ids=["free", "held open"])
def test_a_watched_folder_that_is_removed_and_made_again(root: Path, is_held: bool) -> None:
    inner = root / "b/c"
    inner.mkdir(parents=True)
    (inner / "file").write_text("1")
    with closing(LinuxPlatform().watch_tree([str(inner)])) as watch:
        # A process whose working directory it is delays the report of its removal.
        held = [os.open(each, os.O_RDONLY) for each in (inner, inner.parent, root)] if is_held else []
        for _ in range(2):
            shutil.rmtree(root)
            assert not next_changes(watch, inner / "file")
            inner.mkdir(parents=True)
            (inner / "file").write_text("2")
            next_changes(watch, inner / "file")
        assert watch.barrier(str(inner), PATIENCE)
        waited(watch, 0)
        (inner / "file").write_text("3")
        assert next_changes(watch, inner / "file")
        for each in held:
            os.close(each)


def test_a_watched_folder_that_is_replaced(root: Path) -> None:
    for name in ("a/b", "other/b"):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_text("1")
    watched = root / "a/b"
    with closing(LinuxPlatform().watch_tree([str(watched)])) as watch:
        # The folder above it: the folder itself is only moved along.
        (root / "a").rename(root / "old")
        (root / "other").rename(root / "a")
        assert not next_changes(watch, watched / "file")
        assert watch.barrier(str(watched), PATIENCE)
        waited(watch, 0)
        (root / "old/b/file").write_text("2")
        (watched / "file").write_text("2")
        assert watch.barrier(str(watched), PATIENCE)
        assert waited(watch, 0) == ({str(watched / "file")}, True)


def test_a_missing_folder_is_watched_once_it_exists(root: Path) -> None:
    missing = root / "a/b/c"
    with closing(LinuxPlatform().watch_tree([str(missing), str(root / "d")])) as watch:
        assert not watch.barrier(str(root), PATIENCE), "nothing is watched yet"
        (root / "unrelated").write_text("1")
        assert waited(watch, 0).paths == set()
        missing.mkdir(parents=True)
        (missing / "file").write_text("1")
        assert next_changes(watch, missing / "file")
        (root / "d").symlink_to(root.parent)
        (root / "d").unlink()
        (root / "d").mkdir()
        (root / "d/file").write_text("1")
        assert next_changes(watch, root / "d/file")


def test_single_files_are_watched_without_their_neighbours(root: Path) -> None:
    (root / "a").mkdir()
    files = [root / "a/settings", root / "later/board"]
    with closing(LinuxPlatform().watch_tree([], [str(each) for each in files])) as watch:
        for file in files:
            file.parent.mkdir(exist_ok=True)
            for text in ("1", "2"):
                file.write_text(text)
                next_changes(watch, file)
            (file.parent / "new").write_text("3")
            os.replace(file.parent / "new", file)
            next_changes(watch, file)
            file.unlink()
            next_changes(watch, file)
        (root / "a/other").write_text("1")
        assert waited(watch, 0.05).paths == set()
        shutil.rmtree(root / "a")
        (root / "a").mkdir()
        (root / "a/settings").write_text("1")
        next_changes(watch, root / "a/settings")


AS_NOBODY = """
import os, sys
from watchroom.platform.linux import LinuxPlatform
LinuxPlatform().watch_tree([]).close()
os.chdir(sys.argv[1])
os.setuid(65534)
watch = LinuxPlatform().watch_tree([sys.argv[1]])
print("watched", flush=True)
for line in sys.stdin:
    paths = set()
    while line.strip() not in paths:
        watch.wait(30)
        paths = watch.take().paths
    print("found", flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start it as another user")
def test_a_folder_that_cannot_be_read_is_left_out_until_it_can() -> None:
    root = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        root.chmod(0o755)
        closed = root / "closed"
        (closed / "inner").mkdir(parents=True)
        closed.chmod(0o700)
        with subprocess.Popen(
            [sys.executable, "-c", AS_NOBODY, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "watched\n"
            for number, (mode, path) in enumerate(
                [(0o700, root / "file"), (0o755, closed / "inner/file"), (0o755, closed / "other")]
            ):
                closed.chmod(mode)
                path.write_text(str(number))
                process.stdin.write(f"{path}\n")
                process.stdin.flush()
                assert process.stdout.readline() == "found\n"
            process.stdin.close()
    finally:
        shutil.rmtree(root)


def overflow(folder: Path) -> None:
    """Make more events than the kernel keeps."""
    for each in range(int(MAX_QUEUED.read_text()) // 4 + 100):
        # An event that equals the newest one is not kept: two names.
        for name in (f"x{each % 2}", f"y{each % 2}"):
            os.mknod(folder / name)
            os.unlink(folder / name)


def test_an_overflow_is_reported_and_nothing_is_missed_afterwards(watch: TreeWatch, root: Path) -> None:
    overflow(root)
    # Nobody has reported these folders, and one of them had a watch.
    (root / "a/b").mkdir(parents=True)
    assert not watch.barrier(str(root), PATIENCE)
    assert not waited(watch, PATIENCE).is_complete
    assert changes(watch, root).is_complete
    (root / "a/b/file").write_text("1")
    assert changes(watch, root) == ({"a/b/file"}, True)
    (root / "a/b").rename(root.parent / "b")
    assert "a/b/file" in changes(watch, root).paths


def test_waits_end_by_a_call_and_by_closing(root: Path) -> None:
    watch = LinuxPlatform().watch_tree([str(root)])
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(waited, watch, PATIENCE)
        watch.wake()
        assert waiting.result(PATIENCE) == (set(), True)
        several = [threads.submit(waited, watch, PATIENCE) for _ in range(3)]
        watch.close()
        for each in several:
            assert each.result(PATIENCE) == (set(), True)
    watch.close()
    watch.wake()
    assert not watch.barrier(str(root), PATIENCE)
    assert waited(watch, PATIENCE) == (set(), True)
    assert os.listdir(root) == []


def test_a_barrier_of_another_thread_leaves_its_changes_to_the_one_that_waits(
    watch: TreeWatch, root: Path
) -> None:
    with ThreadPoolExecutor() as threads:
        for number in range(rounds(100, 3000)):
            waiting = threads.submit(waited, watch, PATIENCE)
            (root / f"{number}").write_text("1")
            assert watch.barrier(str(root), PATIENCE)
            found = waiting.result(PATIENCE).paths | waited(watch, 0).paths
            assert found == {str(root / f"{number}")}


def test_a_barrier_is_false_where_nothing_is_watched_or_nobody_can_write(
    watch: TreeWatch, root: Path, tmp_path: Path
) -> None:
    assert not watch.barrier(str(tmp_path), PATIENCE)
    assert not watch.barrier(str(root / "missing"), PATIENCE)
    assert os.listdir(tmp_path) == ["root"]


def test_a_barrier_counts_in_a_folder_that_was_made_again(watch: TreeWatch, root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()
    (root / "file").write_text("1")
    found = changes(watch, root)
    assert "file" in found.paths
    assert not found.is_complete


@pytest.mark.parametrize("allowed", [0, 2])
def test_without_watches_left_it_fails_and_closes_what_it_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    from inotify_simple import INotify

    (root / "a/b").mkdir(parents=True)
    add, numbers = INotify.add_watch, count()

    def refuse(self: INotify, path: str, mask: int) -> int:
        if next(numbers) >= allowed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(add(self, path, mask))

    LinuxPlatform().watch_tree([str(root)]).close()
    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(INotify, "add_watch", refuse)
    with pytest.raises(OSError, match="No space left"):
        LinuxPlatform().watch_tree([str(root)])
    monkeypatch.undo()
    assert os.listdir("/proc/self/fd") == before


def test_a_new_folder_without_a_watch_ends_the_reports(
    watch: TreeWatch, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("inotify_simple.INotify.add_watch", refuse)
    (root / "a").mkdir()
    assert not watch.barrier(str(root), PATIENCE)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            waited(watch, PATIENCE)


# -- random commands

Command = Callable[[Random, Path], None]


def some(random: Random, root: Path, *, folders: bool) -> Path:
    """A random folder, or a random file, which may be missing."""
    found = [root]
    for at, names, files in os.walk(root):
        found += [Path(at, each) for each in (names if folders else files)]
    chosen = random.choice(found)
    return chosen if folders else chosen if chosen != root else root / "file"


def new(random: Random, root: Path) -> Path:
    return some(random, root, folders=True) / f"{random.choice('abcd')}{random.randrange(3)}"


def make_folders(random: Random, root: Path) -> None:
    path = new(random, root)
    for _ in range(random.randrange(5)):
        path = path / random.choice("xyz")
    os.makedirs(path, exist_ok=True)
    (path / "file").write_text("1")


def write(random: Random, root: Path) -> None:
    path = new(random, root) if random.random() < 0.5 else some(random, root, folders=False)
    with open(path, "a") as file:
        file.write("more")


def replace(random: Random, root: Path) -> None:
    scratch = root / "scratch"
    scratch.write_text("2")
    os.replace(scratch, some(random, root, folders=False))


def move(random: Random, root: Path) -> None:
    os.rename(some(random, root, folders=random.random() < 0.7), new(random, root))


def move_out(random: Random, root: Path) -> None:
    path = some(random, root, folders=True)
    outside = root.parent / "outside"
    if path != root:
        shutil.rmtree(outside, ignore_errors=True)
        path.rename(outside)


def move_in(random: Random, root: Path) -> None:
    (root.parent / "outside").rename(new(random, root))


def copy(random: Random, root: Path) -> None:
    source = some(random, root, folders=True)
    if source != root:
        shutil.copytree(source, root / f"copy{random.randrange(3)}", symlinks=True)


def remove(random: Random, root: Path) -> None:
    path = some(random, root, folders=True)
    shutil.rmtree(path) if path != root else None


def remove_file(random: Random, root: Path) -> None:
    some(random, root, folders=False).unlink()


def change_mode(random: Random, root: Path) -> None:
    some(random, root, folders=random.random() < 0.3).chmod(random.choice([0o700, 0o755, 0o600 | 0o100]))


def link(random: Random, root: Path) -> None:
    new(random, root).symlink_to(some(random, root, folders=random.random() < 0.5))


def exchange(random: Random, root: Path) -> None:
    here = os.open(root, os.O_RDONLY)
    try:
        one, other = (os.path.relpath(some(random, root, folders=True), root) for _ in range(2))
        LinuxPlatform().exchange(here, one, here, other)
    finally:
        os.close(here)


COMMANDS: tuple[Command, ...] = (
    make_folders,
    make_folders,
    write,
    write,
    replace,
    move,
    move,
    move_out,
    move_in,
    copy,
    remove,
    remove_file,
    change_mode,
    link,
    exchange,
)


def run_some(random: Random, root: Path) -> list[str]:
    """Run random commands. Return their names."""
    names = []
    for _ in range(random.randrange(1, 9)):
        command = random.choice(COMMANDS)
        names.append(command.__name__)
        try:
            command(random, root)
        except (OSError, shutil.Error):
            names[-1] += " (failed)"
    return names


@pytest.mark.parametrize("is_read_meanwhile", [False, True], ids=["at the barrier", "meanwhile"])
@pytest.mark.parametrize("seed", seeds(2, 100))
def test_after_a_barrier_no_difference_of_the_disk_is_missing(
    watch: TreeWatch, root: Path, seed: int, is_read_meanwhile: bool
) -> None:
    random = Random(seed)
    read: list[TreeChanges] = []
    ending = threading.Event()

    def keep_reading() -> None:
        while not ending.is_set():
            read.append(waited(watch, PATIENCE))

    with ThreadPoolExecutor() as threads:
        reading = threads.submit(keep_reading) if is_read_meanwhile else None
        try:
            for number in range(30):
                before = state(root)
                first = len(read)
                names = run_some(random, root)
                assert watch.barrier(str(root), PATIENCE), names
                # The reader appends what it has taken a moment later.
                expected, found = differing(before, state(root)), waited(watch, 0).paths
                deadline = time.monotonic() + (PATIENCE if is_read_meanwhile else 0)
                while True:
                    paths = found.union(*(each.paths for each in read[first:]))
                    missing = expected - {os.path.relpath(each, root) for each in paths}
                    if not missing or time.monotonic() > deadline:
                        break
                    time.sleep(0.001)
                assert missing == set(), (number, names)
                assert not any("cookie" in each for each in found)
        finally:
            ending.set()
            watch.wake()
            if reading is not None:
                reading.result(PATIENCE)
    assert all(each.is_complete for each in read)
    # The mirror has lost nothing: a change of each file is noticed.
    assert watch.barrier(str(root), PATIENCE)
    waited(watch, 0)
    everything = {each for each in state(root) if not os.path.islink(root / each)}
    for each in everything:
        os.utime(root / each)
    assert changes(watch, root).paths >= everything
