"""What pytest does besides: keeps how long each test took, or runs tests in a given order."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
from hypothesis import Phase, settings

SECONDS: Final = "WATCHROOM_TEST_SECONDS"
"""The environment variable that names the file for them."""


class Recorder:
    """Keeps the seconds of each test that passed, in ``path``, as JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = defaultdict(float)
        self._others: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self._others.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        passed = {test: taken for test, taken in self._seconds.items() if test not in self._others}
        self._path.write_text(json.dumps(passed))


class Trial:
    """Runs tests in their order, looks for no smaller example of a failure, and remembers what failed."""

    def __init__(self, tests: list[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self.failed: list[str] = []

    def pytest_configure(self) -> None:
        settings.register_profile(
            "trial", derandomize=True, deadline=None, phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("trial")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._order.get(item.nodeid, len(self._order)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin by the name of this module: record."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(os.environ[SECONDS])))
