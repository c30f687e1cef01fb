"""The program that clients run: as a hook, and as their MCP server.

`run_client_program` runs it with ``-I -S``. It imports little of the standard library, because a hook starts
for every call of a tool, and each client keeps a server. Its arguments are a command of Watchroom:

- ``watchroom hook DIR --agent ID …``: send the event on standard input to the service, and print its answer.
  If no service can be reached, the program executes that command, which does the same more slowly.
- ``watchroom mcp DIR --agent ID …``: relay between standard input and output and the service, which speaks
  the protocol.

The service (`watchroom.serving.service`) is started if none runs. Every wait of a hook has a deadline: for
the end of the input, which a client may keep open, and for a service that is stopped. While the service waits
for a person, it sends blank lines. The relay waits for a slow service until the client ends.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = "0.3.0"
"""The version of Watchroom. If a newer program connects to an older service, that service ends."""
PROTOCOL = 1
"""The version of the service's request format."""
UNANSWERED = "--unanswered"
"""The option that tells ``watchroom hook`` that the service is running but does not answer."""
MAX_EVENT_BYTES = 20_000_000
BEAT_SECONDS = 2.0
"""Seconds between the blank lines of a service that is still waiting."""
INPUT_SECONDS = 5.0
"""Timeout for reading an event, in seconds."""
SILENCE_SECONDS = 5.0
"""Seconds without a byte after which a service counts as stopped."""
_CONNECT_SECONDS = 2.0
_START_SECONDS = 10.0
"""Timeout for the start of a service, in seconds. A relay waits longer if a service is starting or ending.
It is also the interval between a relay's checks of its client while a service is silent."""
_HOOK_START_SECONDS = 5.0
"""Timeout for the start of a service for a hook, in seconds. A hook can also work without a service."""
_START_AGAIN_SECONDS = 2.0
"""Seconds after which a service that does not respond is started again."""
LOCK = "service.lock"
"""The file in the runtime folder that a service keeps locked. It has the service's process, start time and
version."""
_KEPT = (
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_KEPT_BEGINNINGS = ("LC_", "XDG_", "PG", "WATCHROOM_")
"""Prefixes of environment variables that are passed to a service."""
_ABSENT = (errno.ENOENT, errno.ECONNREFUSED)
"""The errors of a socket without a server."""
_RETRY_SECONDS = 0.02
_BUSY_SECONDS = 1.0
"""Seconds before a relay repeats a request to a service that could not serve it yet. They double each
time."""
_MAX_BUSY_SECONDS = 5.0
_HOLDING = ("PreToolUse", "PermissionRequest", "BeforeTool")
"""The events whose hooks can hold a call, as clients name them."""
_MAX_AGE = 86_400.0
_SHELLS = (b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"busybox")
_MAX_SHELLS = 8
_TRIES = 3
"""Maximum number of consecutive requests to services that end before they answer. Before its client has an
answer, a relay also counts answers with the status 503."""
MAX_FOLDER = 100 - len("/service.sock")
"""Maximum bytes of the path of a runtime folder. The system's limit for a socket is about 107."""
SAFE = "A-Za-z0-9._~/-"
"""The characters that `quote` leaves as they are, as a range of a shell's pattern."""
_MAX_HEAD = 65_536
_PIECE = 1 << 16
_MAX_LINE = 32 * 1024 * 1024
_CLOSED = getattr(select, "POLLRDHUP", 0)
"""The event of a socket whose other end sends no more. The end of a pipe is always reported."""
SWITCHING = 101
_OK = 200
_UNREADABLE = 400
_UNAVAILABLE = 503
"""The status of a service that ends, or that may serve the same request later."""
_INITIALIZED = "notifications/initialized"
_CANCELLED = "notifications/cancelled"
_UPDATED = "notifications/resources/updated"
_SUBSCRIBE = "resources/subscribe"
_UNSUBSCRIBE = "resources/unsubscribe"
_REPEATABLE = (
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    _SUBSCRIBE,
    _UNSUBSCRIBE,
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
)
"""The requests that have the same effect if a service carries them out twice."""
_CLOSING = {"code": -32000, "message": "Connection closed"}
"""The error in the answers of a service that ends while it carries out requests."""
_OWN_ID = "watchroom-relay:"
"""Prefix of the ids of a relay's own requests. The address of a resource follows."""
_OWN = (("protocol", str(PROTOCOL)), ("version", VERSION))
_LOADED = time.monotonic()


def main(command: list[str]) -> int:
    """Run the command line ``command``. Return the exit status."""
    at = next(at for at, word in enumerate(command) if word in ("hook", "mcp"))
    return run_hook(command, at) if command[at] == "hook" else Relay(command, at).run()


# The service


def runtime_folder() -> str:
    """Return the folder of this user's service. It may not exist yet."""
    uid = os.getuid()
    base = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    folder = os.path.join(base, "watchroom")
    if not os.path.isdir(base) or len(os.fsencode(folder)) > MAX_FOLDER:
        return f"/tmp/watchroom-{uid}"  # noqa: S108  # its owner and mode are checked
    return folder


def socket_path() -> str:
    """Return the path of the socket of this user's service."""
    return os.path.join(runtime_folder(), "service.sock")


def make_runtime_folder() -> str:
    """Return `runtime_folder`, created if necessary. Raise OSError if other users have access to it."""
    folder = runtime_folder()
    try:
        os.makedirs(folder, mode=0o700)
    except FileExistsError:
        check_runtime_folder()
    return folder


def check_runtime_folder() -> None:
    """Raise OSError if `runtime_folder` does not exist, or if other users have access to it. Such users could
    answer in place of the service."""
    folder = runtime_folder()
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "not only yours", folder)


def connect(
    program: list[str], seconds: float = _START_SECONDS, on_silence: Callable[[], object] | None = None
) -> socket.socket:
    """Return a connection to the service. If none is running, start it with ``program``.

    - ``seconds``: timeout
    - ``on_silence``: called repeatedly. The timeout starts again while a service is starting or ending, and
      a start that fails is repeated. Default: the timeout also covers that time, and such a failure is
      raised at once

    Raise OSError.
    """
    until, next_start, has_tried = time.monotonic() + seconds, 0.0, False
    failure: OSError | None = None
    while True:
        try:
            return open_connection()
        except OSError as error:
            is_absent = error.errno in _ABSENT
            if not is_absent and error.errno != errno.EAGAIN:
                raise
            if time.monotonic() > until and (has_tried or not is_absent):
                raise failure or error from None
        is_waiting = on_silence is not None and is_service_alive()
        if is_absent and time.monotonic() >= next_start:
            make_runtime_folder()
            try:
                start_service(program, seconds, on_silence)
                failure = None
            except OSError as error:
                if on_silence is None:
                    raise
                # An update may replace the program, or move it. Then another client starts the service.
                failure = error
            next_start = time.monotonic() + _START_AGAIN_SECONDS
            has_tried = not is_waiting
        else:
            # Another process has just started a service, or too many clients connect at the same time.
            time.sleep(_RETRY_SECONDS)
        if on_silence is not None:
            on_silence()
        if is_waiting:
            until, has_tried = time.monotonic() + seconds, False


def open_connection() -> socket.socket:
    """Return a connection to the running service. Raise OSError."""
    check_runtime_folder()
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_CONNECT_SECONDS)
    try:
        connection.connect(socket_path())
    except OSError:
        connection.close()
        raise
    return connection


def start_service(program: list[str], seconds: float, on_silence: Callable[[], object] | None = None) -> None:
    """Start ``watchroom service`` in its own session. Wait until it is ready or has ended.

    - ``seconds``: timeout
    - ``on_silence``: called after each timeout, default: return

    Raise OSError if the program cannot be executed.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        _execute_service(program, writes)
    os.close(writes)
    os.waitpid(child, 0)
    waiting = select.poll()
    waiting.register(reads, select.POLLIN)
    try:
        # The service closes its standard output when it is ready.
        while not waiting.poll(seconds * 1000):
            if on_silence is None:
                return
            on_silence()
        failure = os.read(reads, 16)
    finally:
        os.close(reads)
    if failure.isdigit():
        raise OSError(int(failure), os.strerror(int(failure)), program[0])


def _execute_service(program: list[str], output: int) -> None:
    """Execute the service in a grandchild process, so that nobody must wait for its end. Does not return."""
    try:
        if os.fork() == 0:
            os.setsid()
            os.chdir("/")
            nothing = os.open(os.devnull, os.O_RDWR)
            for number, file in enumerate((nothing, output, nothing)):
                os.dup2(file, number)
            try:
                os.execvpe(program[0], [*program, "service", "run"], service_environment())  # noqa: S606
            except OSError as error:
                os.write(output, str(error.errno).encode())
    finally:
        os._exit(0)


def service_environment() -> dict[str, str]:
    """Return the environment of a service. The service outlives the client that starts it, so it gets neither
    the client's secrets nor its marks."""
    kept = {
        name: each for name, each in os.environ.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    kept.pop("WATCHROOM_AGENT", None)
    return kept


def service_process() -> tuple[int, float]:
    """Return the process id and the start time of this user's service, as recorded by the service. Zeros if
    no service has run."""
    try:
        check_runtime_folder()
        with open(os.path.join(runtime_folder(), LOCK), encoding="ascii") as file:
            pid, started = file.read(_MAX_HEAD).split()[:2]
        return int(pid), float(started)
    except (OSError, ValueError):
        return 0, 0.0


def is_service_alive() -> bool:
    """Return whether the process of `service_process` exists. Such a service may be starting or ending.

    A zombie does not count. On a system without /proc, it counts, and so does a process of this user that got
    the id later.
    """
    pid, started = service_process()
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        state, _, began = _read_stat(str(pid))
    except (OSError, ValueError, IndexError):
        return pid > 0
    return state != "Z" and began == started


def request(
    method: str, path: str, fields: list[tuple[str, str]], body: bytes = b"", more: str = ""
) -> bytes:
    """Return an HTTP request to the service with the query ``fields``. ``more``: additional header lines."""
    target = request_target(path, fields)
    head = f"{method} {target} HTTP/1.1\r\nHost: w\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode("ascii") + body


def request_target(path: str, fields: list[tuple[str, str]]) -> str:
    """Return the target of a request to the service with the query ``fields``."""
    return f"{path}?" + "&".join(f"{name}={quote(value)}" for name, value in [*_OWN, *fields])


def ask(method: str, path: str, seconds: float, fields: list[tuple[str, str]] | None = None) -> bytes:
    """Return the answer of the running service. It is not started. Raise OSError, ValueError."""
    with open_connection() as connection:
        connection.sendall(request(method, path, fields or []))
        stream = Stream(connection, seconds)
        status, answer = read_head(stream), read_chunks(stream)
    if status != _OK:
        raise ValueError(answer.decode(errors="replace"))
    return answer


def quote(text: str) -> str:
    """Return ``text`` for a query, percent-encoded."""
    safe = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
    return "".join(chr(each) if each in safe else f"%{each:02X}" for each in os.fsencode(text))


def read_head(stream: Stream) -> int:
    """Read the head of a response. Return its status. Raise OSError, ValueError."""
    head = stream.until(b"\r\n\r\n")
    return int(head.split(None, 2)[1])


class Stream:
    """Reads from ``connection``.

    - ``seconds``: timeout for each byte, None for no timeout
    - ``on_silence``: called after each timeout, default: raise TimeoutError

    Raises ConnectionError at the end of the stream.
    """

    def __init__(
        self,
        connection: socket.socket,
        seconds: float | None,
        on_silence: Callable[[], object] | None = None,
    ) -> None:
        self._connection = connection
        self._on_silence = on_silence
        connection.settimeout(seconds)
        self.rest = b""

    def until(self, mark: bytes) -> bytes:
        """Return the bytes before ``mark``."""
        while mark not in self.rest:
            if len(self.rest) > _MAX_HEAD:
                raise ValueError("too long")
            self._read()
        found, self.rest = self.rest.split(mark, 1)
        return found

    def exactly(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        while len(self.rest) < size:
            self._read()
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def _read(self) -> None:
        try:
            piece = self._connection.recv(_PIECE)
        except TimeoutError:
            if self._on_silence is None:
                raise
            self._on_silence()
            return
        if not piece:
            raise ConnectionResetError(errno.ECONNRESET, "the service ended")
        self.rest += piece


def read_chunks(stream: Stream) -> bytes:
    """Return the complete body of a chunked response. Raise OSError, ValueError."""
    body = b""
    while size := int(stream.until(b"\r\n"), 16):
        body += stream.exactly(size)
        stream.exactly(2)
    stream.exactly(2)
    return body


# The hook


def run_hook(command: list[str], at: int) -> int:
    """Handle the event on standard input like the hook in ``command``, whose words begin at ``at``. Return
    the exit status."""
    event = read_event()
    is_holding = parse_event(event).get("hook_event_name") in _HOLDING
    if is_holding:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _refuse)
    fields = [("root", _absolute(command[at + 1])), ("age", f"{age():.3f}")]
    fields += [("form", "status"), ("entry", os.environ.get("CLAUDE_CODE_ENTRYPOINT", ""))]
    fields += _options(command[at + 2 :])
    for _ in range(_TRIES):
        try:
            status, answer = _ask_about(command[:at], fields, event)
        except TimeoutError:
            return _become([*command, UNANSWERED], event)
        except ConnectionError:
            # The service has ended. The next service continues, and records nothing twice.
            continue
        except (OSError, ValueError):
            break
        return _print_answer(command, event, status, answer)
    return _become(command, event)


def _ask_about(program: list[str], fields: list[tuple[str, str]], event: bytes) -> tuple[int, bytes]:
    """Return the status and the body of the service's answer to the hook of ``event``. Raise OSError,
    ValueError."""
    with connect(program, _HOOK_START_SECONDS) as connection:
        stream = Stream(connection, SILENCE_SECONDS)
        connection.sendall(request("POST", "/hook", fields, event))
        return read_head(stream), read_chunks(stream)


def _print_answer(command: list[str], event: bytes, status: int, answer: bytes) -> int:
    """Print the service's answer. Return the exit status."""
    said = parse_event(answer) if status == _OK else {}
    if said.keys() == {"said", "error", "status"}:
        sys.stdout.write(str(said["said"]))
        sys.stderr.write(str(said["error"]))
        sys.stdout.flush()
        return int(str(said["status"]))
    if status == _UNREADABLE:
        # Exit status 2 refuses a call that could not be parsed.
        sys.stderr.buffer.write(answer + b"\n")
        return 2
    return _become(command, event)


def _absolute(root: str) -> str:
    """Return the folder ``root`` as an absolute path. The address of a database is returned unchanged."""
    return root if "://" in root else os.path.abspath(root)


def _options(words: list[str]) -> list[tuple[str, str]]:
    """Return the options of a command as the fields of a request."""
    fields, left = [], iter(words)
    for word in left:
        if word == "--strict":
            fields.append(("strict", "1"))
        elif word.startswith("--"):
            fields.append((word[2:], next(left, "")))
    return fields


def read_event(file: int = 0, seconds: float = INPUT_SECONDS) -> bytes:
    """Read the JSON object on the descriptor ``file``: until it is complete, until the end of the input, or
    for ``seconds`` seconds. Clients may keep the input open."""
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
        # Parsing is slow, so it is only tried if the text ends like an object.
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
    """Return the fields of ``event``, empty if it is not a JSON object."""
    try:
        fields = json.loads(event)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def age() -> float:
    """Return the age of the hook in seconds: since the start of this process, or of the shell script that
    runs it. The script may have waited for a service first.

    If the system does not report the start, return the seconds since this module was loaded. A process keeps
    its start time across exec.
    """
    loaded = time.monotonic() - _LOADED
    try:
        began = _start_of_command() / os.sysconf("SC_CLK_TCK")
        since = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError, AttributeError):
        return loaded
    # In a namespace with another clock, the difference is meaningless.
    return since if 0 <= since <= loaded + _MAX_AGE else loaded


def _start_of_command() -> int:
    """Return the start of this process in clock ticks, or the start of its outermost shell ancestor that runs
    a command. Raise OSError, ValueError, IndexError."""
    _, above, started = _read_stat("self")
    for _ in range(_MAX_SHELLS):
        with open(f"/proc/{above}/cmdline", "rb") as file:
            name, option = [*file.read(_PIECE).split(b"\0"), b"", b""][:2]
        if name.rpartition(b"/")[2] not in _SHELLS or not option.startswith(b"-") or b"c" not in option:
            break
        _, above, started = _read_stat(above)
    return started


def _read_stat(pid: str) -> tuple[str, str, int]:
    """Return the state of the process ``pid``, its parent, and its start in clock ticks."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return fields[0].decode(), fields[1].decode(), int(fields[19])


def _refuse(*_: object) -> None:
    """Refuse the call and end this process. A client that ends a late hook ignores the refusal. It matters if
    anyone else ends the hook."""
    sys.stderr.write("watchroom hook: ended before it was answered\n")
    sys.stderr.flush()
    os._exit(2)


def _become(command: list[str], event: bytes) -> int:
    """Execute the command in place of this program, with the event as its input."""
    # This module loads slowly.
    import tempfile

    try:
        with tempfile.TemporaryFile() as file:
            file.write(event)
            file.seek(0)
            os.dup2(file.fileno(), 0)
            os.execvp(command[0], command)  # noqa: S606  # the command that the hook is given
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
    # Exit status 2 refuses the call.
    return 2 if "--strict" in command else 1


# The server


class Relay:
    """Passes lines from the client to the service, and from the service to the client. ``command``: a
    server's command, whose words begin at ``at``.

    If the service ends, the relay continues with a new service. It repeats unanswered requests once if they
    are repeatable, and subscribes again to the client's resources. Other unanswered requests get an error:
    they may have been carried out, and a repetition could run them twice. The relay waits for a service that
    is slow, busy, starting or ending for as long as the client runs, because clients do not start a relay
    again.
    """

    def __init__(self, command: list[str], at: int) -> None:
        self._program = command[:at]
        self._fields = [("root", _absolute(command[at + 1])), *_options(command[at + 2 :])]
        self._from_client = Lines()
        self._from_service = Lines()
        self._to_service = bytearray()
        self._open: dict[str, tuple[object, bytes]] = {}
        """The ids of the client's unanswered requests, by their JSON. Each has the line to repeat, empty for
        none."""
        self._subscribed: dict[str, None] = {}
        """The addresses of the resources to which the client subscribed."""
        self._is_served = False
        """Whether the client has got an answer."""
        self._hello = b""
        """The client's first request, which every new service must receive."""
        self._hello_id: object = None
        self._is_initialized = False
        self._is_repeating = False
        """Whether the next answer to the first request is dropped, because the client already has an
        answer."""

    def run(self) -> int:
        """Relay until the client closes standard input. Return the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(0))
        try:
            while True:
                with self._connect() as connection:
                    if not self._relay(connection):
                        return 0
                self._lose_service()
        except _ClientEndedError:
            return 0
        except _RefusedError as error:
            sys.stderr.write(f"{error}\n")
        except (OSError, ValueError) as error:
            sys.stderr.write(f"watchroom mcp: {error}\n")
        return 1

    def _connect(self) -> socket.socket:
        """Return a connection to a service that has received the first messages. Raise OSError, ValueError,
        `_RefusedError`, `_ClientEndedError`."""
        upgrade = "Connection: Upgrade\r\nUpgrade: mcp\r\n"
        tries_left, pause = _TRIES, _BUSY_SECONDS
        while True:
            connection = connect(self._program, _START_SECONDS, self._check_client)
            # A service that has died closes the connection.
            stream = Stream(connection, _START_SECONDS, self._check_client)
            try:
                connection.sendall(request("GET", "/mcp", self._fields, more=upgrade))
                status = read_head(stream)
                if status == SWITCHING:
                    break
                reason = read_chunks(stream).decode(errors="replace").strip()
            except ConnectionError:
                # This service is ending.
                tries_left -= 1
                if not tries_left:
                    raise
                connection.close()
                continue
            connection.close()
            tries_left = _TRIES if self._is_served else tries_left - 1
            if status != _UNAVAILABLE or not tries_left:
                raise _RefusedError(reason)
            self._check_client(pause)
            pause = min(2 * pause, _MAX_BUSY_SECONDS)
        self._from_service = Lines()
        self._pass_to_client(stream.rest)
        connection.setblocking(False)
        self._to_service[:] = self._hello
        self._is_repeating = bool(self._hello) and json.dumps(self._hello_id) not in self._open
        if not self._is_repeating:
            self._repeat_requests()
        return connection

    def _check_client(self, seconds: float = 0) -> None:
        """Raise `_ClientEndedError` if the client has closed standard input, or closes it within
        ``seconds``."""
        waiting = select.poll()
        waiting.register(0, _CLOSED)
        if waiting.poll(seconds * 1000):
            raise _ClientEndedError

    def _relay(self, connection: socket.socket) -> bool:
        """Relay until the service ends (return True) or the client ends (return False)."""
        waiting = select.poll()
        while True:
            # The client must wait while the service does not read, and while a new service is being
            # initialized.
            is_full = len(self._to_service) > _PIECE or self._is_repeating
            waiting.register(0, _CLOSED if is_full else select.POLLIN)
            wanted = select.POLLIN | (select.POLLOUT if self._to_service else 0)
            waiting.register(connection, wanted)
            ready = dict(waiting.poll())
            if is_full and ready.get(0, 0):
                return False
            try:
                happened = ready.get(connection.fileno(), 0)
                if happened & select.POLLOUT:
                    del self._to_service[: connection.send(self._to_service[:_PIECE])]
                if happened & ~select.POLLOUT:
                    piece = connection.recv(_PIECE)
                    if not piece:
                        return True
                    self._pass_to_client(piece)
            except BlockingIOError:
                continue
            except ConnectionError:
                return True
            if ready.get(0, 0):
                piece = os.read(0, _PIECE)
                if not piece:
                    return False
                self._pass_to_service(piece)

    def _lose_service(self) -> None:
        """Answer the client's unanswered requests with an error, except those that are repeated."""
        for key, (number, line) in [*self._open.items()]:
            is_repeated = line or (number == self._hello_id and not self._is_initialized)
            if not is_repeated:
                del self._open[key]
                _write(_error(number))

    def _repeat_requests(self) -> None:
        """Send the unanswered requests to a new service, and subscribe again."""
        for key, (number, line) in self._open.items():
            self._to_service += line
            # Only once, because the request may have ended the service.
            self._open[key] = number, b""
        for uri in self._subscribed:
            self._to_service += _dump({"id": _OWN_ID + uri, "method": _SUBSCRIBE, "params": {"uri": uri}})

    def _pass_to_service(self, piece: bytes) -> None:
        for line in self._from_client.add(piece):
            fields = parse_event(line)
            number, method, params = fields.get("id"), fields.get("method"), fields.get("params")
            if method is not None and number is not None:
                self._open[json.dumps(number)] = number, line if method in _REPEATABLE else b""
            if method == "initialize":
                self._hello, self._hello_id = line, number
            elif isinstance(params, dict):
                self._note_params(method, params)
            self._is_initialized = self._is_initialized or method == _INITIALIZED
            self._to_service += line

    def _note_params(self, method: object, params: dict[str, object]) -> None:
        uri = params.get("uri")
        if method == _CANCELLED:
            self._open.pop(json.dumps(params.get("requestId")), None)
        elif method == _SUBSCRIBE and isinstance(uri, str):
            self._subscribed[uri] = None
        elif method == _UNSUBSCRIBE and isinstance(uri, str):
            self._subscribed.pop(uri, None)

    def _pass_to_client(self, piece: bytes) -> None:
        for line in self._from_service.add(piece):
            fields = parse_event(line)
            if fields.get("error") == _CLOSING:
                # `_lose_service` answers, or the next service.
                continue
            if "method" not in fields and (number := fields.get("id")) is not None:
                if self._is_repeating and number == self._hello_id:
                    self._is_repeating = False
                    if self._is_initialized:
                        self._to_service += _dump({"method": _INITIALIZED})
                    self._repeat_requests()
                    continue
                if isinstance(number, str) and number.startswith(_OWN_ID):
                    if "result" in fields:
                        # The resource may have changed while no service was running.
                        uri = number.removeprefix(_OWN_ID)
                        _write(_dump({"method": _UPDATED, "params": {"uri": uri}}))
                    continue
                if number == self._hello_id and "error" in fields:
                    # The service serves the newer protocol, which has no handshake.
                    self._hello, self._hello_id = b"", None
                self._open.pop(json.dumps(number), None)
                self._is_served = True
            _write(line)


class _ClientEndedError(Exception):
    """The client has ended."""


class _RefusedError(Exception):
    """The service refuses this client. The text has the reason."""


class Lines:
    """Splits pieces of a stream into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, piece: bytes) -> list[bytes]:
        """Return the lines, with their ends, that ``piece`` completes. Raise ValueError for a line that is
        too long."""
        if b"\n" not in piece:
            if len(self._rest) > _MAX_LINE:
                raise ValueError(f"a line of more than {_MAX_LINE} bytes")
            self._rest += piece
            return []
        *lines, rest = (bytes(self._rest) + piece).split(b"\n")
        self._rest[:] = rest
        return [line + b"\n" for line in lines]


def _write(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]


def _error(number: object) -> bytes:
    said = "The service ended before it answered. The call may have been made: read before you repeat it."
    return _dump({"id": number, "error": {"code": -32000, "message": said}})


def _dump(fields: dict[str, object]) -> bytes:
    """Return the message with these ``fields`` as a line."""
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"
