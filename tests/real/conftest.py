"""What the real tests share."""

from __future__ import annotations

import faulthandler

import pytest


@pytest.fixture(autouse=True)
def _own_timeouts() -> None:
    """Let a test run longer than a test of the fast tier may: each bounds the processes that it waits for."""
    faulthandler.cancel_dump_traceback_later()
