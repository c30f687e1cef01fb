"""The program between us and a command that has no namespaces of its own.

It is loaded by a Python of its own, and given a `Job` in an open file. It imports nothing of ours, and of the
rest only what is quick to load: it is started for each command. It bounds the command, starts it, and stays
its ancestor whatever the command does: all that it left behind ends with it, and ends when we do. And it does
for the command what the kernel does not bound to a folder: changes of modes, owners and times, of files that
are the command's to write.
"""

from __future__ import annotations

# ruff: noqa: SIM105  # contextlib takes longer to load than all of this
import _socket
import ctypes
import errno
import marshal
import os
import select
import signal
import stat
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn

if sys.platform != "win32":
    import fcntl

Call = tuple[str, int, int, int, int]
"""What a call changes (mode, owner, times), and which of its arguments are the folder, the path, the new
value, and the flags; -1: it has none, `NO_LINKS`: none, and it follows no symlink."""

NO_LINKS: Final = -2


class Job:
    """What there is to do: plain values only. ``kept`` stands in what is writable, and is not; ``calls`` are
    those that the filter, ``code``, hands over, by their numbers; ``numbers`` are those of seccomp and capset
    on this machine. The rest are descriptors; where ``rules`` is -1 the command is held behind nothing."""

    def __init__(
        self,
        *,
        argv: tuple[str, ...],
        environment: dict[str, str],
        temporary: str,
        writable: tuple[str, ...],
        kept: tuple[str, ...],
        calls: dict[int, Call],
        code: bytes,
        numbers: tuple[int, int],
        told: int,
        gate: int,
        rules: int,
        folder: int,
    ) -> None:
        self.argv = argv
        self.environment = environment
        self.temporary = temporary
        self.writable = writable
        self.kept = kept
        self.calls = calls
        self.code = code
        self.numbers = numbers
        self.told = told
        self.gate = gate
        self.rules = rules
        self.folder = folder


_SET_FILTER: Final = 1
_WITH_LISTENER: Final = 8
_RESTRICT: Final = 446
_NO_NEW_PRIVILEGES: Final = 38
_SUBREAPER: Final = 36
_DROP: Final = 24
_LAST_CAPABILITY: Final = 63
_CAPABILITY_VERSION: Final = 0x20080522
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_IS_VALID: Final = 0x40082102
_ASKED: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")
_HERE: Final = -100
_NOFOLLOW: Final = 0x100
_EMPTY_PATH: Final = 0x1000
_LONGEST_PATH: Final = 4096
_NOT_STARTED: Final = 125


def supervise(job: Job) -> int:
    """Start the command as soon as ``gate`` says so, and see that all of it ends. Returns its exit code."""
    for fd in (job.told, job.gate, job.rules, job.folder):
        if fd >= 0:
            os.set_inheritable(fd, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    _give_up_rights(job)
    if not _is_wanted(job):
        _clear(job.temporary)
        return _NOT_STARTED
    woken, waking = os.pipe()
    for fd in (woken, waking):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ours, theirs = _socket.socketpair()
    child = os.fork()
    if not child:
        _become(job, theirs)
    theirs.close()
    listener = _received(ours)
    ours.close()
    try:
        code = _watch(job, child, woken, listener)
    finally:
        _end_all()
    if code is None:
        if not os.read(job.gate, 1):
            _clear(job.temporary)
        return 128 + signal.SIGKILL
    try:
        os.write(job.told, b'"exit-code": %d ' % code)
    except BrokenPipeError:
        _clear(job.temporary)
    return code


def _is_wanted(job: Job) -> bool:
    """Wait to be told to begin; False where nobody is there any more."""
    try:
        os.write(job.told, b'"child-pid": %d ' % os.getpid())
        return bool(os.read(job.gate, 1))
    except BrokenPipeError:
        return False


def _give_up_rights(job: Job) -> None:
    _checked(_libc().prctl(_SUBREAPER, 1, 0, 0, 0))
    _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(_LAST_CAPABILITY + 1):
        # It fails for those that this kernel does not have, and for all where we have none.
        _libc().prctl(_DROP, capability, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0), 8)
    none = ctypes.create_string_buffer(24)
    _checked(_libc().syscall(job.numbers[1], header, none))


def _become(job: Job, theirs: _socket.socket) -> NoReturn:
    """Be the command, behind its backend, or say why that cannot be."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.fchdir(job.folder)
        if job.code:
            _close_in(job, theirs)
        os.execve(job.argv[0], job.argv, job.environment)  # noqa: S606  # a shell, with the command
    except OSError as error:
        os.write(job.told, b'"why": "%s" ' % os.strerror(error.errno or 0).encode())
    finally:
        os._exit(_NOT_STARTED)


def _close_in(job: Job, theirs: _socket.socket) -> None:
    """Give up what the rules do not allow and the filter refuses, and send the filter's listener."""
    _checked(_libc().syscall(_RESTRICT, job.rules, 0))
    code = ctypes.create_string_buffer(job.code, len(job.code))
    program = struct.pack("@HP", len(job.code) // 8, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(program, len(program))
    listener = _checked(_libc().syscall(job.numbers[0], _SET_FILTER, _WITH_LISTENER, buffer))
    theirs.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("@i", listener))])


def _received(ours: _socket.socket) -> int:
    """The listener that the child sends, -1 if it does not get so far."""
    _, sent, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(4))
    listener: int = struct.unpack("@i", sent[0][2])[0] if sent else -1
    return listener


def _watch(job: Job, child: int, woken: int, listener: int) -> int | None:
    """Serve the command until it is over; None if it is to be ended, or nobody is there any more."""
    poll = select.poll()
    for fd in (job.gate, woken, listener):
        if fd >= 0:
            poll.register(fd, select.POLLIN)
    while True:
        for fd, event in poll.poll():
            if fd == job.gate:
                return None
            if fd == woken:
                try:
                    os.read(woken, 4096)
                except BlockingIOError:
                    pass
                code = _reaped(child)
                if code is not None:
                    return code
            elif event & select.POLLIN:
                _serve(job, listener)
            else:
                poll.unregister(listener)


def _reaped(child: int) -> int | None:
    """Take leave of those that ended; the exit code of ``child`` if it was among them."""
    code = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
                code = ended if ended >= 0 else 128 - ended
    except ChildProcessError:
        pass
    return code


def _end_all() -> None:
    """Kill all that came from the command, until nothing is left: orphans become ours."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        waiting = [os.getpid()]
        while waiting:
            above = waiting.pop()
            for pid in _children(above):
                _kill(pid, (above, os.getpid()))
                waiting.append(pid)
        time.sleep(0.001)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found.extend(map(int, file.read().split()))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def _kill(pid: int, parents: tuple[int, int]) -> None:
    """Kill it if it still is who it was: its number may be another's by now."""
    try:
        process = os.pidfd_open(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
            if parent in parents:
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)
    except (FileNotFoundError, ProcessLookupError):
        pass


def _serve(job: Job, listener: int) -> None:
    """Do one call for the command, or refuse it."""
    asked = bytearray(_ASKED.size)
    try:
        # Who asked may be gone at any moment.
        fcntl.ioctl(listener, _RECEIVE, asked)
        number, pid, _, call, _, _, *arguments = _ASKED.unpack(asked)
        try:
            _change(job, listener, number, pid, job.calls[call], arguments)
            error = 0
        except OSError as refused:
            error = refused.errno or errno.EPERM
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, 0, -error, 0))
    except OSError:
        pass


def _change(job: Job, listener: int, number: int, pid: int, call: Call, arguments: list[int]) -> None:
    what, _, _, value, _ = call
    target = _target(pid, call, arguments)
    try:
        # Only now is it certain that all this was of the process that asked.
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", number))
        path = f"/proc/self/fd/{target}"
        _check_is_writable(job, os.readlink(path))
        if what == "mode":
            os.chmod(path, arguments[value] & 0o1777)
        elif what == "owner":
            _check_is_ours(_signed(arguments[value]), _signed(arguments[value + 1]))
            os.chown(path, _signed(arguments[value]), _signed(arguments[value + 1]))
        else:
            times = _memory(pid, arguments[value], 32) if arguments[value] else None
            if times is not None and len(times) < 32:
                raise OSError(errno.EFAULT, "")
            _checked(_libc().utimensat(_HERE, path.encode(), times, 0))
    finally:
        os.close(target)


def _target(pid: int, call: Call, arguments: list[int]) -> int:
    """A descriptor of what the call means."""
    _, folder, path, _, flags = call
    given = arguments[flags] if flags >= 0 else 0
    base = _signed(arguments[folder]) if folder >= 0 else _HERE
    name = _text(pid, arguments[path]) if path >= 0 and arguments[path] else b""
    start = b"/proc/%d/cwd" % pid if base == _HERE else b"/proc/%d/fd/%d" % (pid, base)
    if name:
        no_links = os.O_NOFOLLOW if given & _NOFOLLOW or flags == NO_LINKS else 0
        return os.open(os.path.join(start, name), os.O_PATH | no_links)
    if path >= 0 and arguments[path] and not given & _EMPTY_PATH:
        raise FileNotFoundError(errno.ENOENT, "")
    return os.open(start, os.O_PATH)


def _check_is_writable(job: Job, path: str) -> None:
    if not _is_within(path, job.writable) or _is_within(path, job.kept):
        raise PermissionError(errno.EPERM, "")


def _is_within(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def _check_is_ours(user: int, group: int) -> None:
    if user not in (-1, os.getuid()) or group not in (-1, os.getgid(), *os.getgroups()):
        raise PermissionError(errno.EPERM, "")


def _text(pid: int, address: int) -> bytes:
    """The path at that place in its memory."""
    text = b""
    while b"\0" not in text and len(text) < _LONGEST_PATH:
        # A page at a time: the next one may not be there.
        here = address + len(text)
        text += _memory(pid, here, _LONGEST_PATH - here % _LONGEST_PATH)
    name, ended, _ = text.partition(b"\0")
    if not ended or len(name) >= _LONGEST_PATH:
        raise OSError(errno.ENAMETOOLONG, "")
    return name


def _memory(pid: int, address: int, size: int) -> bytes:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        found = os.pread(memory, size, address)
        if not found:
            raise ProcessLookupError(errno.ESRCH, "")
        return found
    except OverflowError as error:
        raise OSError(errno.EFAULT, "") from error
    finally:
        os.close(memory)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _clear(folder: str) -> None:
    """Take away what nobody else will."""
    try:
        remove_tree(folder)
    except OSError:
        # Nobody is there any more who could be told.
        pass


def remove_tree(path: str) -> None:
    """Remove a folder and all in it, however deep that is and whatever its modes forbid. Nobody else may be
    at work there. A folder in a folder is moved to the top before it is emptied, so that no path gets long
    and nothing recurses. Raises OSError."""
    os.chmod(path, 0o700)
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        mark, moved = os.urandom(8).hex(), 0
        while names := os.listdir(top):
            for name in names:
                if not _is_folder(top, name):
                    os.unlink(name, dir_fd=top)
                    continue
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
                try:
                    for inner in os.listdir(folder):
                        if _is_folder(folder, inner):
                            moved += 1
                            os.rename(inner, f"{mark}-{moved}", src_dir_fd=folder, dst_dir_fd=top)
                        else:
                            os.unlink(inner, dir_fd=folder)
                finally:
                    os.close(folder)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path)


def _is_folder(above: int, name: str) -> bool:
    """Whether that is a folder, which then can be opened, emptied and moved."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
        return False
    os.chmod(name, 0o700, dir_fd=above)
    return True


def main(given: int) -> int:
    """The exit code of the command whose `Job` stands in that file."""
    with open(given, "rb") as file:
        job = Job(**marshal.load(file))  # noqa: S302  # what we wrote ourselves
    return supervise(job)
