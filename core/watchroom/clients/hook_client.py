"""The program that clients call as a hook: give an event to the attendant, and print its answer.

It is run with ``-I -S`` and imports little of the standard library, since it begins with every call of
every tool. Its arguments are the command ``watchroom hook DIR --agent ID …``. It becomes that command if no
attendant answers: that does the same, but more slowly.

Nothing here waits without a deadline: neither for the end of the input, which a client may keep open, nor for
an attendant that is stopped. An attendant whose hook waits for a person sends an empty line now and then.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import tempfile
import time

FOLDER = os.path.join(".watchroom", "attendants")
UNANSWERED = "--unanswered"
"""Tells ``watchroom hook`` that the attendant is there and does not answer."""
MAX_EVENT_BYTES = 20_000_000
BEAT_SECONDS = 2.0
"""Seconds between the empty lines of an attendant that is still waiting."""
_INPUT_SECONDS = 5.0
_SILENCE_SECONDS = 10.0
"""Seconds without a line after which an attendant is taken to be stopped."""
_RECORD_SECONDS = 2.0
"""Seconds to wait until an attendant has recorded what its answer delivers."""
_MAX_ANCESTORS = 8
_CONNECT_SECONDS = 2.0
_START_SECONDS = 20.0
_APART = 0.2
_MAX_ENDED = 65536
"""Characters of the file in which an attendant that has left names its sessions."""
_HOLDING = ("PreToolUse", "PermissionRequest")
_MAX_AGE = 300.0
_LOADED = time.monotonic()


def main(command: list[str]) -> int:
    """Handle the event on standard input as ``command`` would. Return the exit status."""
    parent = os.getppid()
    event = read_event()
    fields = parse_event(event)
    is_holding = fields.get("hook_event_name") in _HOLDING
    if is_holding:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _refuse)
    root = command[command.index("hook") + 1]
    agents = [command[at + 1] for at, each in enumerate(command[:-1]) if each == "--agent"]
    ancestors = _ancestors(parent)
    names = _names(root, agents, ancestors)
    # A client may be idle before its server has started, and waits for no such hook.
    is_stop = fields.get("hook_event_name") == "Stop"
    until = time.monotonic() + (_START_SECONDS if _may_wait() and is_stop else 0)
    while not names and time.monotonic() < until:
        time.sleep(_APART)
        names = _names(root, agents, ancestors)
    for name in names:
        try:
            answered = _ask(root, name, agents, event)
        except TimeoutError:
            return _become([*command, UNANSWERED], event)
        if answered is not None:
            return _print(*answered)
        ended = _read_ended(root, name)
        if fields.get("hook_event_name") == "SessionEnd" and fields.get("session_id") in ended:
            # Nothing is left to be told.
            return 0
        if os.getppid() != parent:
            # Nobody waits for an answer any more. If somebody does, the call is not made.
            return 2 if is_holding else 0
        # Another client, within the one that is gone, may still be about to make a call.
        if not is_holding and not _is_there(int(name.removesuffix(".sock").rpartition("-")[2])):
            return 0
        if ended:
            # With another event its sessions go on.
            _remove(os.path.join(root, FOLDER, name))
    return _become(command, event)


def read_event(file: int = 0, seconds: float = _INPUT_SECONDS) -> bytes:
    """Read the JSON object on the descriptor ``file``: up to its end, the end of the input, or for
    ``seconds`` seconds. Clients may keep the input open."""
    read = bytearray()
    until = time.monotonic() + seconds
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    while len(read) <= MAX_EVENT_BYTES:
        left = until - time.monotonic()
        if left <= 0 or not waiting.poll(left * 1000):
            break
        piece = os.read(file, 1 << 20)
        read += piece
        # Only what ends like an object can be a whole one: to look is slow.
        if not piece or (piece.rstrip().endswith(b"}") and _is_whole(read)):
            break
    return bytes(read)


def _is_whole(read: bytes | bytearray) -> bool:
    try:
        json.loads(read)
    except (ValueError, RecursionError):
        return False
    return True


def parse_event(event: bytes) -> dict[str, object]:
    """Return the fields of ``event``, empty if it is no JSON object."""
    try:
        fields = json.loads(event)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def age() -> float:
    """Return the seconds since this process began, as far as the system says, else since it loaded this
    module. A program that replaces another (exec) has the age of that."""
    loaded = time.monotonic() - _LOADED
    try:
        with open("/proc/self/stat", "rb") as file:
            began = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        since = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError, AttributeError):
        return loaded
    # In a namespace with another clock the difference means nothing.
    return since if 0 <= since <= loaded + _MAX_AGE else loaded


def _refuse(*_: object) -> None:
    """End this process so that the call is not made: a client that ends a late hook no longer listens, and
    nobody else may end one."""
    sys.stderr.write("watchroom hook: ended before it was answered\n")
    sys.stderr.flush()
    os._exit(2)


def _names(root: str, agents: list[str], ancestors: list[int]) -> list[str]:
    """Return the attendants that may be this client's: of one of the agents, or of a client that is given an
    agent of several."""
    try:
        names = os.listdir(os.path.join(root, FOLDER))
    except OSError:
        return []
    own = [f"{agent}-{pid}.sock" for pid in ancestors for agent in ("", *agents)]
    return [each for each in own if each in names]


def _read_ended(root: str, name: str) -> list[str]:
    """The sessions that the attendant has ended before it left; none where it has not left."""
    try:
        with open(os.path.join(root, FOLDER, name), encoding="utf-8") as file:
            return file.read(_MAX_ENDED).splitlines()
    except (OSError, ValueError):
        return []


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


def _ask(
    root: str, name: str, agents: list[str], event: bytes
) -> tuple[dict[str, object], socket.socket] | None:
    """Return what the attendant answers, and the open connection; None if the attendant is gone, or is not of
    one of ``agents``. Raises TimeoutError if it is silent."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        # A path from the root may be too long for a socket.
        os.chdir(os.path.join(root, FOLDER))
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(name)
        connection.settimeout(_SILENCE_SECONDS)
        head = {"bytes": len(event), "may_wait": _may_wait(), "age": age(), "beats": True, "agents": agents}
        connection.sendall(json.dumps(head).encode() + b"\n" + event)
        with connection.makefile("rb") as file:
            line = b"\n"
            while line == b"\n":
                line = file.readline()
        answer = json.loads(line) if line else None
    except TimeoutError:
        connection.close()
        raise
    except (OSError, ValueError):
        answer = None
    if answer is None:
        connection.close()
        return None
    return answer, connection


def _print(answer: dict[str, object], connection: socket.socket) -> int:
    """Print ``answer`` and return the exit status. If it delivers messages, wait until the attendant at
    ``connection`` has recorded that."""
    sys.stdout.write(str(answer["said"]))
    sys.stderr.write(str(answer["error"]))
    sys.stdout.flush()
    if answer.get("delivers"):
        ended = select.poll()
        ended.register(connection, select.POLLIN)
        ended.poll(_RECORD_SECONDS * 1000)
    connection.close()
    return int(str(answer["status"]))


def _may_wait() -> bool:
    """Whether a hook may wait beside an idle client: one without a terminal ends only once its hooks have."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli"


def _ancestors(pid: int) -> list[int]:
    parents = {} if os.path.isdir("/proc/self") else _list_parents()
    found: list[int] = []
    while pid > 1 and len(found) < _MAX_ANCESTORS:
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
