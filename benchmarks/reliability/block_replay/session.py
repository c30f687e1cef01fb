"""Work on a recorded disk, and the state of its workspace after a power loss."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from watchroom import Workspace

from reliability.block_replay.namespace import FileSystem, leave_mounts, make_disk, mount, restart_machine
from reliability.torturing.oracle import Oracle
from reliability.torturing.workers import AGENTS, Told, create_document, open_draft

_KINDS: Final = ("write", "write", "edit", "draft")
_PACKAGE: Final = "reliability.block_replay"
_BENCHMARKS: Final = Path(__file__).parents[2]
_PATIENCE: Final = 300.0


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording of work.

    - ``image``: the disk before it.
    - ``log``: the writes to the disk.
    - ``told``: the folder of the workers' reports.
    - ``begin``, ``end``: the positions in the log between which the power can fail.
    """

    file_system: FileSystem
    image: Path
    log: Path
    told: Path
    begin: int
    end: int


class Findings(NamedTuple):
    """The state of a workspace after a power loss.

    - ``acknowledged``: the number of answers before it.
    - ``problems``: what is wrong.
    - ``repaired``: the number of files that differed from their rows until ``verify --repair``.
    """

    acknowledged: int
    problems: list[str]
    repaired: int


def record(folder: Path, file_system: FileSystem, seconds: float, seed: int) -> Recording:
    """Record workers on a new disk in ``folder`` for ``seconds``. Raises RuntimeError."""
    image, live, log, told = (folder / name for name in ("before", "live", "log", "told"))
    told.mkdir()
    make_disk(image, file_system)
    subprocess.run(["cp", "--sparse=always", image, live], check=True)
    begin = _in_process(_record, folder, file_system, live, log, told, seconds, seed)
    live.unlink()
    return Recording(file_system, image, log, told, int(begin), log.stat().st_size)


def _record(
    folder: Path, file_system: FileSystem, live: Path, log: Path, told: Path, seconds: float, seed: int
) -> int:
    """Record in this process. Return the position in the log at which the workspace was complete."""
    leave_mounts()
    recorder = _start("recording_file", live, log, stdout=subprocess.PIPE)
    if recorder.stdout is None or recorder.stdout.readline() != b"ready\n":
        raise RuntimeError("the disk cannot be recorded")
    place = folder / "mounted"
    mount(live, file_system, place)
    root = place / "team"
    with Workspace.open(root, AGENTS) as workspace:
        create_document(workspace)
        for agent in AGENTS:
            open_draft(workspace.tools(agent))
    os.sync()
    begin = log.stat().st_size
    numbers = [seed * len(_KINDS) + slot for slot in range(len(_KINDS))]
    workers = [
        _start("worker", root, told, log, number, kind) for number, kind in zip(numbers, _KINDS, strict=True)
    ]
    deadline = time.monotonic() + _PATIENCE
    while not all((told / str(each)).exists() for each in numbers) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(seconds)
    for each in workers:
        each.kill()
        each.wait()
    subprocess.run(["umount", place], check=True)
    subprocess.run(["umount", live], check=True)
    recorder.wait(_PATIENCE)
    return begin


def _start(module: str, *arguments: object, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"{_PACKAGE}.{module}", *map(str, arguments)]
    return subprocess.Popen(command, stdout=stdout, cwd=_BENCHMARKS)


def examine(recording: Recording, disk: Path, position: int, seed: int) -> Findings:
    """Return the findings on ``disk``, whose power failed at ``position``, after mounting it on a restarted
    machine. Raises RuntimeError if it cannot be mounted or opened."""
    return Findings(*json.loads(_in_process(_examine, recording, disk, position, seed)))


def _examine(recording: Recording, disk: Path, position: int, seed: int) -> str:
    """Examine the disk in this process. Return the findings as JSON."""
    with tempfile.TemporaryDirectory(dir=disk.parent) as name:
        folder = Path(name)
        known = folder / "told"
        known.mkdir()
        for file in recording.told.iterdir():
            (known / file.name).write_bytes(b"".join(_told_until(file, position)))
        leave_mounts()
        restart_machine(folder, str(random.Random(seed).getrandbits(64)))
        place = folder / "mounted"
        mount(disk, recording.file_system, place)
        try:
            oracle = Oracle(known, folder / "task")
            with Workspace.open(place / "team") as workspace:
                workspace.scan()
                problems = list(oracle.problems(workspace))
                before = workspace.verify()
                problems += [f"verify: {each}" for each in before if each.kind == "journal"]
                problems += [f"after repair: {each}" for each in workspace.repair()]
        finally:
            subprocess.run(["umount", place], check=True)
    return json.dumps([oracle.acknowledged, problems, len(before)])


def _told_until(file: Path, position: int) -> list[bytes]:
    """Return the answers in ``file`` up to the given position of the log."""
    known = []
    for line in file.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            told: Told = json.loads(line)
            if "success" in told and told["moment"] <= position:
                known.append(line)
    return known


def _in_process(work: Callable[..., object], *arguments: object) -> str:
    """Return the result of ``work`` in a forked process, as text. Raises RuntimeError."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run(to: Connection) -> None:
        try:
            to.send((True, str(work(*arguments))))
        except BaseException:  # noqa: BLE001 - told to the other process, which raises it
            to.send((False, traceback.format_exc()))

    process = context.Process(target=run, args=(sender,))
    process.start()
    sender.close()
    try:
        is_done, said = receiver.recv()
    except EOFError:
        is_done, said = False, "the process has ended"
    process.join()
    if not is_done:
        raise RuntimeError(said)
    return str(said)
