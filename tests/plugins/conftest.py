"""What the tests of plug-ins share."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugins.installing import Installed


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    folder = tmp_path / "packages"
    folder.mkdir()
    return Installed(folder)
