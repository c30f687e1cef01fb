"""What the tests of the clients share: no proxies between them and their server, and waits that take no time."""

from __future__ import annotations

import pytest
from runtime.models.waits import Waits

pytest.register_assert_rewrite("runtime.models.asking")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def waits() -> Waits:
    return Waits()
