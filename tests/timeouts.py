"""Timeouts that end a command after it has begun, however busy the machine is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def run_until_begun(run: Callable[[float], Result], has_begun: Callable[[Result], object]) -> Result:
    """Return the first result of ``run`` whose command began before its timeout.

    - ``run``: runs the command with a timeout in seconds. The start of the command counts too, and takes seconds
      on a busy machine.
    - ``has_begun``: called with a result of ``run``.
    """
    for seconds in (0.5, 4.0):
        if has_begun(result := run(seconds)):
            return result
    return run(30.0)
