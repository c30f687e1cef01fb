"""Runs commands in real shells whose only programs report their arguments. Started as a process of its own,
with a folder that it may fill as its argument.

Each line of the input is a JSON list of a shell's name and a command. Each line of the output is a JSON object:
``ran`` has the arguments of every program that was started, ``traced`` the number of simple commands that the
shell executed, programs or not, ``files`` the names of the files that were left, ``output`` what was printed.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import time

SECONDS = 10.0
PROGRAMS = ("git", "make", "cat", "env", "head", "sudo", "xargs")
_SHIM = '#!{shell}\nprintf \'%s\\0\' "$#" "${{0##*/}}" "$@" >&9\n'


class Oracle:
    def __init__(self, folder: str) -> None:
        self.programs = os.path.join(folder, "programs")
        self.scratch = os.path.join(folder, "scratch")
        self.log = os.open(os.path.join(folder, "output"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.mkdir(self.programs)
        for name in PROGRAMS:
            path = os.path.join(self.programs, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(_SHIM.format(shell=shutil.which("dash") or shutil.which("sh")))
            os.chmod(path, 0o755)
        self.environment = {
            "PATH": self.programs,
            "LC_ALL": "C.UTF-8",
            "HOME": self.scratch,
        }

    def run(self, shell: str, command: str) -> dict[str, object]:
        os.makedirs(self.scratch, exist_ok=True)
        os.chdir(self.scratch)
        os.ftruncate(self.log, 0)
        reader, writer = os.pipe()
        program = shutil.which(shell)
        assert program is not None
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, self.log, 1),
            (os.POSIX_SPAWN_DUP2, self.log, 2),
            (os.POSIX_SPAWN_DUP2, writer, 9),
        ]
        words = [os.fsencode(each) for each in (shell, "-x", "-c", command)]
        child = os.posix_spawn(program, words, self.environment, file_actions=actions, setpgroup=0)
        os.close(writer)
        received = self._receive(reader, child)
        os.close(reader)
        os.waitpid(child, 0)
        files = sorted(os.listdir(self.scratch))
        if files:
            os.chdir("/")
            shutil.rmtree(self.scratch, ignore_errors=True)
        output = os.pread(self.log, 100_000, 0).decode("utf-8", "replace")
        return {
            "ran": _calls(received),
            "traced": output.count("+ "),
            "files": files,
            "output": output,
        }

    def _receive(self, reader: int, child: int) -> bytes:
        """Return the reports of the programs, after the shell and all its children have ended."""
        received, deadline = bytearray(), time.monotonic() + SECONDS
        while True:
            ready, _, _ = select.select([reader], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                os.killpg(child, signal.SIGKILL)
                deadline = time.monotonic() + SECONDS
                continue
            data = os.read(reader, 65536)
            if not data:
                return bytes(received)
            received += data


def _calls(received: bytes) -> list[list[str]]:
    fields = received.decode("utf-8", "surrogateescape").split("\0")[:-1]
    calls: list[list[str]] = []
    while fields:
        count = int(fields[0]) + 2
        calls.append(fields[1:count])
        fields = fields[count:]
    return calls


def main() -> None:
    oracle = Oracle(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(oracle.run(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
