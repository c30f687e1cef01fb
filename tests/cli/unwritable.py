"""Run a program for which the disk is read-only or full: ``python unwritable.py read-only|full PROGRAM …``.

Root ignores the permissions of files. Without that capability it obeys them, which needs no mount.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

_DROP_FROM_BOUNDING_SET = 24
_OVERRIDE_PERMISSIONS = 1

if __name__ == "__main__":
    how, *program = sys.argv[1:]
    if how == "full":
        # Every write to a file fails, as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    elif os.getuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_DROP_FROM_BOUNDING_SET, _OVERRIDE_PERMISSIONS, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the capability could not be dropped")
    os.execv(program[0], program)
