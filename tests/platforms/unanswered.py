"""Systems that do not answer questions about processes."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

NO_PROC: Final = ("bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc", "--")
"""The words before a command that runs without /proc."""


@contextmanager
def no_free_descriptors() -> Iterator[None]:
    """Neither /proc nor ps(1) answers within the context."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    unused = os.dup(0)
    os.close(unused)
    resource.setrlimit(resource.RLIMIT_NOFILE, (unused, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def fail_ps(folder: Path, patch: pytest.MonkeyPatch, program: str = "exit 2") -> Path:
    """Replace ps(1) by a shell ``program`` in ``folder``. Return a file with a line for each of its runs."""
    runs, ps = folder / "ps_runs", folder / "ps"
    runs.touch()
    ps.write_text(f"#!/bin/sh\necho >> {runs}\n{program}\n")
    ps.chmod(0o755)
    patch.setattr(os, "defpath", str(folder))
    return runs
