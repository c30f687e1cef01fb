"""The program that clients call as a hook: hands what happens to the attendant, and prints what it answers.

It is run with ``-I -S`` and imports little of the standard library, since it begins with every call of every
tool. Its arguments are the command ``watchroom hook DIR --agent ID …``, which it becomes where no attendant
answers: that does the same, only slower.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time

FOLDER = os.path.join(".watchroom", "attendants")
_MOST_ANCESTORS = 8
_CONNECT_SECONDS = 2.0
_START_SECONDS = 20.0
_APART = 0.2
_MOST_ENDED = 65536
"""Characters of the file in which an attendant that has left names its sessions."""


def main(command: list[str]) -> int:
    """Handle the event on standard input as ``command`` would, and return the exit status."""
    parent = os.getppid()
    event = sys.stdin.buffer.read()
    root, agent = (command[command.index(each) + 1] for each in ("hook", "--agent"))
    ancestors = _ancestors(parent)
    names = _names(root, agent, ancestors)
    # A client may be idle before its server has started, and waits for no such hook.
    until = time.monotonic() + (_START_SECONDS if _may_wait() and b'"Stop"' in event else 0)
    while not names and time.monotonic() < until:
        time.sleep(_APART)
        names = _names(root, agent, ancestors)
    for name in names:
        answer = _ask(root, name, event)
        if answer is not None:
            sys.stdout.write(answer["said"])
            sys.stderr.write(answer["error"])
            return int(answer["status"])
        ended = _read_ended(root, name)
        if (
            _is_end_of(event, ended)
            or os.getppid() != parent
            or not _is_there(int(name.removesuffix(".sock").rpartition("-")[2]))
        ):
            # Nothing is left to be told, or nobody waits for an answer any more.
            return 0
        if ended:
            # With another event its sessions go on.
            _remove(os.path.join(root, FOLDER, name))
    return _become(command, event)


def _names(root: str, agent: str, ancestors: list[int]) -> list[str]:
    """The attendants of the agent that may be this client's."""
    try:
        names = os.listdir(os.path.join(root, FOLDER))
    except OSError:
        return []
    own = [f"{agent}-{pid}.sock" for pid in ancestors]
    return [each for each in own if each in names]


def _read_ended(root: str, name: str) -> list[str]:
    """The sessions that the attendant has ended before it left; none where it has not left."""
    try:
        with open(os.path.join(root, FOLDER, name), encoding="utf-8") as file:
            return file.read(_MOST_ENDED).splitlines()
    except (OSError, ValueError):
        return []


def _is_end_of(event: bytes, sessions: list[str]) -> bool:
    """Whether the event is the end of one of ``sessions``."""
    try:
        told = json.loads(event)
        return told["hook_event_name"] == "SessionEnd" and told["session_id"] in sessions
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        # Another hook was quicker.
        return


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as file:
            # One that has ended may wait to be collected.
            return file.read().rpartition(b")")[2].split()[0] not in b"ZX"
    except ProcessLookupError:
        return False
    except OSError:
        return True


def _ask(root: str, name: str, event: bytes) -> dict[str, str] | None:
    """What the attendant answers, None where it is not there."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        # A path from the root may be too long for a socket.
        os.chdir(os.path.join(root, FOLDER))
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(name)
        connection.settimeout(None)
        head = json.dumps({"bytes": len(event), "may_wait": _may_wait()}).encode() + b"\n"
        connection.sendall(head + event)
        with connection.makefile("rb") as file:
            line = file.readline()
        answer: dict[str, str] | None = json.loads(line) if line else None
    except (OSError, ValueError):
        return None
    else:
        return answer
    finally:
        connection.close()


def _may_wait() -> bool:
    """Whether a hook may wait beside an idle client: one without a terminal ends only once its hooks have."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli"


def _ancestors(pid: int) -> list[int]:
    parents = {} if os.path.isdir("/proc/self") else _list_parents()
    found: list[int] = []
    while pid > 1 and len(found) < _MOST_ANCESTORS:
        found.append(pid)
        pid = parents.get(pid, 0) if parents else _parent_of(pid)
    return found


def _parent_of(pid: int) -> int:
    """The parent of a process, 0 where it is gone, or the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def _list_parents() -> dict[int, int]:
    """The parent of each process, where there is no /proc; empty where there is no ps(1)."""
    # Slow to load.
    import subprocess

    try:
        said = subprocess.run(("ps", "-axo", "pid=,ppid="), capture_output=True, check=True).stdout
        return {int(pid): int(parent) for pid, parent in map(bytes.split, said.splitlines())}
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}


def _become(command: list[str], event: bytes) -> int:
    """Run the command in place of this program, with the event as its input."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(event)
            file.seek(0)
            os.dup2(file.fileno(), 0)
            os.execvp(command[0], command)  # noqa: S606  # the command that the hook is given
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
    # Status 2 keeps the call from being made.
    return 2 if "--strict" in command else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
