"""Runs a command in a terminal of its own, and leaves the dashboard that it opens with the key ``q``."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

SECONDS_TO_INSTALL = 900
SECONDS_TO_WATCH = 5
SECONDS_TO_LEAVE = 60
ALTERNATE_SCREEN = b"\x1b[?1049h"


def main(command: str) -> int:
    """Run ``command`` with bash; returns its exit status, 1 where no dashboard came or it did not leave."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvp("bash", ["bash", "-c", command])  # noqa: S606  # the README's line is one of the shell
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    shown = b""
    deadline, has_left = time.monotonic() + SECONDS_TO_INSTALL, False
    leave_at: float | None = None
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:
                # The last process of the terminal has ended.
                break
        if leave_at is None and ALTERNATE_SCREEN in shown:
            leave_at = time.monotonic() + SECONDS_TO_WATCH
        if leave_at is not None and not has_left and time.monotonic() > leave_at:
            os.write(terminal, b"q")
            has_left, deadline = True, time.monotonic() + SECONDS_TO_LEAVE
    else:
        sys.stdout.buffer.write(shown[-2000:])
        print("\nThe command did not end.")
        return 1
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status or not has_left:
        sys.stdout.buffer.write(shown[-4000:])
    print(f"{command}: {'left' if has_left else 'no dashboard was seen'}, status {status}")
    return status if has_left else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
