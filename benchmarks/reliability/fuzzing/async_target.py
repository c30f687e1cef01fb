"""Shared by targets that serve a workspace on an event loop."""

from __future__ import annotations

import asyncio
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Hashable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from watchroom import Workspace

from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.oracle import require
from reliability.fuzzing.view_checks import problems

_PATIENCE: Final = 20.0
_PERIOD: Final = 5000


class AsyncTarget(ABC):
    """A target with its own event loop."""

    size = 60_000
    period = _PERIOD
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._parent = folder
        self._number = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.top = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self._parent)))
            self.workspace = stack.enter_context(Workspace.open(self.top / "team", agents=["alice", "bob"]))
            result = self.workspace.tools("bob").dispatch_tool_call(
                "collab_write", {"filepath": "plan.md", "content": "one\n", "message": "m"}
            )
            require(result["success"], result)
            self._runner = stack.enter_context(asyncio.Runner())
            self._await(self.begin())
            stack.callback(lambda: self._await(self.end()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _await(self, work: Coroutine[Any, Any, Hashable]) -> Hashable:
        async def bounded() -> Hashable:
            async with asyncio.timeout(_PATIENCE):
                return await work

        return self._runner.run(bounded())

    @abstractmethod
    async def begin(self) -> None:
        """Start to serve."""

    @abstractmethod
    async def end(self) -> None:
        """Stop serving."""

    @abstractmethod
    async def send(self, data: bytes) -> Hashable:
        """Send ``data``, and return the kind of the answer."""

    def run(self, data: bytes) -> Hashable:
        return self._await(self.send(data))

    def check(self) -> Sequence[str]:
        return problems(self.workspace)
