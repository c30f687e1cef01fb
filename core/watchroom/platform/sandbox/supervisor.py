"""The program that supervises a command without its own namespaces.

It runs in its own Python process, and reads a `Job` from an open file. It is started for each command, so it
imports only modules that load fast, and nothing else from this package. It restricts and starts the command.
It stays the ancestor of all processes of the command, and kills them when the command or Watchroom ends.

The kernel cannot limit changes of modes, owners and times to a folder. So the supervisor makes these changes
for the command, on files that are writable for the command.
"""

from __future__ import annotations

# ruff: noqa: SIM105  # contextlib takes longer to load than this whole module
import _socket
import ctypes
import errno
import fcntl
import marshal
import os
import select
import signal
import stat
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn, TypedDict

CallArguments = tuple[str, int, int, int, int]
"""The property changed by a system call (mode, owner, times), and the positions of four arguments: folder,
path, new value, flags.

A position of -1 means that the call has no such argument. `NO_LINKS` for the flags means that the call has no
flags, and follows no symlink.
"""

NO_LINKS: Final = -2


if TYPE_CHECKING:

    class Job(TypedDict):
        """A command with the data for running it. Plain values only.

        - ``argv``, ``environment``: the arguments and environment of the command.
        - ``temporary``: its temporary folder.
        - ``writable``: the writable paths.
        - ``protected``: paths beneath these that it cannot change.
        - ``notified``: the system calls that the filter passes to the supervisor, by number.
        - ``filter_code``: the code of the seccomp filter.
        - ``call_numbers``: the numbers of the system calls seccomp and capset.
        - ``status_fd``: a descriptor for reports.
        - ``start_fd``: a descriptor of a pipe. The first byte starts the command. A second byte, or the end
          of the pipe, ends it.
        - ``rules``: the descriptor of Landlock's rules, -1 for no restrictions.
        - ``folder``: a descriptor of the working directory.
        """

        argv: tuple[str, ...]
        environment: dict[str, str]
        temporary: str
        writable: tuple[str, ...]
        protected: tuple[str, ...]
        notified: dict[int, CallArguments]
        filter_code: bytes
        call_numbers: tuple[int, int]
        status_fd: int
        start_fd: int
        rules: int
        folder: int


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
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_AT_FDCWD: Final = -100
_NOFOLLOW: Final = 0x100
_EMPTY_PATH: Final = 0x1000
_MAX_PATH_BYTES: Final = 4096
_NOT_STARTED: Final = 125


def supervise(job: Job) -> int:
    """Start the command of ``job`` on request, and end all of its processes. Return the exit code."""
    for fd in (job["status_fd"], job["start_fd"], job["rules"], job["folder"]):
        if fd >= 0:
            os.set_inheritable(fd, False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _drop_rights(job)
    if not _wait_for_start(job):
        _remove_quietly(job["temporary"])
        return _NOT_STARTED
    wakeup, wakeup_write = os.pipe()
    for fd in (wakeup, wakeup_write):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ours, theirs = _socket.socketpair()
    child = os.fork()
    if not child:
        _exec_command(job, theirs)
    theirs.close()
    listener = _receive_listener(ours)
    ours.close()
    try:
        code = _watch(job, child, wakeup, listener)
    finally:
        _kill_all()
    if code is None:
        if not os.read(job["start_fd"], 1):
            _remove_quietly(job["temporary"])
        return 128 + signal.SIGKILL
    try:
        os.write(job["status_fd"], b'"exit-code": %d ' % code)
    except BrokenPipeError:
        _remove_quietly(job["temporary"])
    return code


def _wait_for_start(job: Job) -> bool:
    """Wait for the start byte. Return False if Watchroom has ended."""
    try:
        os.write(job["status_fd"], b'"child-pid": %d ' % os.getpid())
        return bool(os.read(job["start_fd"], 1))
    except BrokenPipeError:
        return False


def _drop_rights(job: Job) -> None:
    _check_result(_libc().prctl(_SUBREAPER, 1, 0, 0, 0))
    _check_result(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(_LAST_CAPABILITY + 1):
        # This fails for capabilities that this kernel lacks, and for all capabilities if we have none.
        _libc().prctl(_DROP, capability, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0), 8)
    none = ctypes.create_string_buffer(24)
    _check_result(_libc().syscall(job["call_numbers"][1], header, none))


def _exec_command(job: Job, theirs: _socket.socket) -> NoReturn:
    """Execute the command with its restrictions, or report the reason why this failed."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.fchdir(job["folder"])
        if job["filter_code"]:
            _restrict(job, theirs)
        os.execve(job["argv"][0], job["argv"], job["environment"])  # noqa: S606  # a shell that runs the command
    except OSError as error:
        os.write(job["status_fd"], b'"why": "%s" ' % os.strerror(error.errno or 0).encode())
    finally:
        os._exit(_NOT_STARTED)


def _restrict(job: Job, theirs: _socket.socket) -> None:
    """Apply Landlock's rules and the filter, and send the filter's listener."""
    _check_result(_libc().syscall(_RESTRICT, job["rules"], 0))
    code = ctypes.create_string_buffer(job["filter_code"], len(job["filter_code"]))
    program = struct.pack("@HP", len(job["filter_code"]) // 8, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(program, len(program))
    listener = _check_result(_libc().syscall(job["call_numbers"][0], _SET_FILTER, _WITH_LISTENER, buffer))
    theirs.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("@i", listener))])


def _receive_listener(ours: _socket.socket) -> int:
    """Return the listener sent by the child, -1 if the child fails first."""
    _, sent, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(4))
    listener: int = struct.unpack("@i", sent[0][2])[0] if sent else -1
    return listener


def _watch(job: Job, child: int, wakeup: int, listener: int) -> int | None:
    """Handle system calls until the command has ended. Return its exit code.

    None if it must be killed, or if Watchroom has ended.
    """
    poll = select.poll()
    for fd in (job["start_fd"], wakeup, listener):
        if fd >= 0:
            poll.register(fd, select.POLLIN)
    while True:
        for fd, event in poll.poll():
            if fd == job["start_fd"]:
                return None
            if fd == wakeup:
                try:
                    os.read(wakeup, 4096)
                except BlockingIOError:
                    pass
                code = _reap(child)
                if code is not None:
                    return code
            elif event & select.POLLIN:
                _handle_call(job, listener)
            else:
                poll.unregister(listener)


def _reap(child: int) -> int | None:
    """Reap ended processes. Return the exit code of ``child`` if it was among them."""
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


def _kill_all() -> None:
    """Kill all processes of the command. Orphans become our children, so repeat this until none is left."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        waiting = [os.getpid()]
        while waiting:
            above = waiting.pop()
            for pid in list_children(above):
                _kill(pid, (above, os.getpid()))
                waiting.append(pid)
        time.sleep(0.001)


def list_children(pid: int) -> list[int]:
    """Return the ids of the children of the process ``pid``, none if it has ended."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found.extend(map(int, file.read().split()))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def _kill(pid: int, parents: tuple[int, int]) -> None:
    """Kill the process ``pid`` only if its parent is among ``parents``, because ids are reused."""
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


def _handle_call(job: Job, listener: int) -> None:
    """Make one system call for the command, or refuse it."""
    notification = bytearray(_NOTIFICATION.size)
    try:
        # The calling process can end at any moment.
        fcntl.ioctl(listener, _RECEIVE, notification)
        number, pid, _, call, _, _, *arguments = _NOTIFICATION.unpack(notification)
        try:
            _make_change(job, listener, number, pid, job["notified"][call], arguments)
            error = 0
        except OSError as refused:
            error = refused.errno or errno.EPERM
        fcntl.ioctl(listener, _SEND, _RESPONSE.pack(number, 0, -error, 0))
    except OSError:
        pass


def _make_change(
    job: Job, listener: int, number: int, pid: int, call: CallArguments, arguments: list[int]
) -> None:
    what, _, _, value, _ = call
    target = _open_target(pid, call, arguments)
    try:
        # Only now is it certain that the data came from the calling process, and not from a later process
        # with its id.
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", number))
        path = f"/proc/self/fd/{target}"
        _check_is_writable(job, os.readlink(path))
        if what == "mode":
            os.chmod(path, arguments[value] & 0o1777)
        elif what == "owner":
            _check_owner(_signed(arguments[value]), _signed(arguments[value + 1]))
            os.chown(path, _signed(arguments[value]), _signed(arguments[value + 1]))
        else:
            times = _read_memory(pid, arguments[value], 32) if arguments[value] else None
            if times is not None and len(times) < 32:
                raise OSError(errno.EFAULT, "")
            _check_result(_libc().utimensat(_AT_FDCWD, path.encode(), times, 0))
    finally:
        os.close(target)


def _open_target(pid: int, call: CallArguments, arguments: list[int]) -> int:
    """Open the file to be changed by the call. Return its descriptor."""
    _, folder, path, _, flags = call
    given = arguments[flags] if flags >= 0 else 0
    base = _signed(arguments[folder]) if folder >= 0 else _AT_FDCWD
    name = _read_path(pid, arguments[path]) if path >= 0 and arguments[path] else b""
    start = b"/proc/%d/cwd" % pid if base == _AT_FDCWD else b"/proc/%d/fd/%d" % (pid, base)
    if name:
        no_links = os.O_NOFOLLOW if given & _NOFOLLOW or flags == NO_LINKS else 0
        return os.open(os.path.join(start, name), os.O_PATH | no_links)
    if path >= 0 and arguments[path] and not given & _EMPTY_PATH:
        raise FileNotFoundError(errno.ENOENT, "")
    return os.open(start, os.O_PATH)


def _check_is_writable(job: Job, path: str) -> None:
    if not _is_within(path, job["writable"]) or _is_within(path, job["protected"]):
        raise PermissionError(errno.EPERM, "")


def _is_within(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def _check_owner(user: int, group: int) -> None:
    if user not in (-1, os.getuid()) or group not in (-1, os.getgid(), *os.getgroups()):
        raise PermissionError(errno.EPERM, "")


def _read_path(pid: int, address: int) -> bytes:
    """Read the path at ``address`` in the memory of the process ``pid``."""
    text = b""
    while b"\0" not in text and len(text) < _MAX_PATH_BYTES:
        # Read one page at a time, because the next page may be unmapped.
        here = address + len(text)
        text += _read_memory(pid, here, _MAX_PATH_BYTES - here % _MAX_PATH_BYTES)
    name, ended, _ = text.partition(b"\0")
    if not ended or len(name) >= _MAX_PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, "")
    return name


def _read_memory(pid: int, address: int, size: int) -> bytes:
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


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _remove_quietly(folder: str) -> None:
    """Remove a folder after Watchroom has ended. Nobody is left to report an error to."""
    try:
        remove_tree(folder)
    except OSError:
        pass


def remove_tree(path: str) -> None:
    """Remove the folder ``path`` with its content, at any depth and with any modes. Raise OSError.

    No other process may write there. Nested folders are moved to the top before they are emptied, so that no
    path becomes too long and no recursion is needed.
    """
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
    """Return whether ``name`` is a folder. If so, give our user all rights to it."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
        return False
    os.chmod(name, 0o700, dir_fd=above)
    return True


def contain(seconds: float, command: list[str]) -> int:
    """Run ``command`` without restrictions, and end all of its processes with it. Returns 0.

    The command is also ended after ``seconds``, and when standard input ends. Its exit code, or the negative
    number of the signal that ended it, is the only line on standard error; nothing is printed if it was ended
    here. The standard error of the command is its standard output.
    """
    _check_result(_libc().prctl(_SUBREAPER, 1, 0, 0, 0))
    child = os.fork()
    if not child:
        try:
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(1, 2)
            os.execvp(command[0], command)  # noqa: S606  # a shell that runs the command
        except OSError as error:
            os.write(1, f"{command[0]}: {os.strerror(error.errno or 0)}\n".encode())
        finally:
            os._exit(127)
    process = os.pidfd_open(child)
    poll = select.poll()
    for fd in (0, process):
        poll.register(fd, select.POLLIN)
    try:
        ended = [fd for fd, _ in poll.poll(seconds * 1000)]
        if process in ended:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(2, b"%d\n" % code)
    finally:
        _kill_all()
    return 0


def main(job_fd: int) -> int:
    """Run the `Job` in the open file ``job_fd``. Return the exit code of its command."""
    with open(job_fd, "rb") as file:
        job: Job = marshal.load(file)  # noqa: S302  # written by `SupervisedBackend`
    return supervise(job)
