"""Runs one client without a terminal. It ends the client when its own standard input ends, so that the client
does not outlive the command that started it.

Run it as a file, without site packages: ``python -I -S client_keeper.py LOG MAX_BYTES SECONDS PROGRAM …``.

- ``LOG``: a file for the end of what the client prints, of at most ``MAX_BYTES``.
- ``SECONDS``: how long the client has to end after SIGTERM.

The exit status is the client's, or 128 and the number of the signal that ended the client.
"""

import os
import selectors
import signal
import subprocess
import sys
import time

_LOOK_SECONDS = 0.1
_PIECE_BYTES = 1 << 16
_NOT_STARTED = 127


class BoundedLog:
    """A file at ``path`` that keeps the last ``max_bytes`` written."""

    def __init__(self, path: str, max_bytes: int) -> None:
        self._file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b", buffering=0)  # noqa: SIM115
        self._max_bytes = max_bytes
        self._size = 0

    def write(self, piece: bytes) -> None:
        """Write ``piece``. If the file is full, keep only the newer half."""
        if self._size + len(piece) > self._max_bytes:
            kept = min(self._size, self._max_bytes // 2)
            self._file.seek(self._size - kept)
            rest = self._file.read(kept) or b""
            self._file.seek(0)
            self._file.truncate()
            piece = (rest + piece)[-self._max_bytes :]
            self._size = 0
        self._file.write(piece)
        self._size += len(piece)


class ClientKeeper:
    """Runs ``command``. ``seconds``: how long it has to end after SIGTERM."""

    def __init__(self, command: list[str], log: BoundedLog, seconds: float) -> None:
        self._log = log
        self._seconds = seconds
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
        # Opened as a pipe above.
        self._output = self._process.stdout.fileno() if self._process.stdout else -1
        self._deadline: float | None = None

    def run(self) -> int:
        """Return the exit status when the client has ended."""
        process, output = self._process, self._output
        os.set_blocking(output, False)
        with selectors.DefaultSelector() as selector:
            for each in (0, output):
                selector.register(each, selectors.EVENT_READ)
            while process.poll() is None:
                for key, _ in selector.select(_LOOK_SECONDS):
                    piece = os.read(key.fd, _PIECE_BYTES)
                    if key.fd == output:
                        self._log.write(piece)
                    if not piece:
                        selector.unregister(key.fd)
                        if key.fd == 0:
                            self._stop()
                if self._deadline is not None and time.monotonic() > self._deadline:
                    self._send(signal.SIGKILL)
        self._drain(output)
        status = process.wait()
        return status if status >= 0 else 128 - status

    def _stop(self) -> None:
        self._deadline = time.monotonic() + self._seconds
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        # The client was not reaped yet, so its id still identifies its group.
        os.killpg(self._process.pid, number)

    def _drain(self, output: int) -> None:
        """Write the last output of the client. Programs that it has left running may continue to print."""
        try:
            for _ in range(64):
                piece = os.read(output, _PIECE_BYTES)
                if not piece:
                    return
                self._log.write(piece)
        except BlockingIOError:
            return


def main(arguments: list[str]) -> int:
    """Run the client. Return its exit status."""
    path, max_bytes, seconds, *command = arguments
    log = BoundedLog(path, int(max_bytes))
    try:
        keeper = ClientKeeper(command, log, float(seconds))
    except OSError as error:
        log.write(f"{command[0]}: {error.strerror}\n".encode())
        return _NOT_STARTED
    return keeper.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
