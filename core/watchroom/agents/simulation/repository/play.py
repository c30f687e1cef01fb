"""Plays the story in a repository: all clients on one event loop in a background thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from traceback import extract_tb
from types import TracebackType
from typing import Final, Self

from watchroom.agents.simulation.repository.client import Ended, SimulatedClient
from watchroom.agents.simulation.repository.story import Story, StoryMove, Worker, load_story
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.model import USER
from watchroom.workspace import Workspace

_FIRST_PAUSE: Final = (0.2, 2.0)
_PAUSE: Final = (1.5, 3.5)
"""Minimum and maximum seconds before each step."""
_READING_SHARE: Final = 0.5
"""The pause before a file is read, as a fraction of the pause before other steps."""
_POLL_SECONDS: Final = 0.02
"""Seconds between checks whether a turn has ended: the hook that ends it can wait for hours."""
_END_SECONDS: Final = 5.0
"""Timeout for the end of a client, in seconds."""


class RepositorySimulation:
    """Simulated clients at work in a repository. Methods can be called from any thread.

    - ``workspace``: the workspace of the repository, which this process keeps. All agents of the story must
      be registered.
    - ``folder``: the working tree, created by `make_repository`.
    - ``seed``: the seed for the lengths of pauses, default 0.
    - ``speed``: divides all pauses, default 1: the story takes less than a minute. 0: no pauses.
    - ``on_end``: called once the story is over, with a text about the remaining work. Default: no callback.

    As a context manager it starts and stops. Raises ValueError if ``speed`` is negative.
    """

    def __init__(
        self,
        workspace: Workspace,
        folder: str,
        *,
        seed: int = 0,
        speed: float = 1.0,
        on_end: Callable[[str], object] | None = None,
    ) -> None:
        if speed < 0:
            raise ValueError(f"speed is 0 (no pauses) or more, not {speed}")
        self._workspace = workspace
        self._folder = Path(folder)
        self._seed = seed
        self._speed = speed
        self._on_end = on_end
        self._story: Story = load_story()
        self._over: dict[str, asyncio.Event] = {}
        self._errors: list[str] = []
        self._is_told = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="watchroom-simulation", daemon=True)

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of failed workers."""
        return tuple(self._errors)

    def start(self) -> None:
        """Start the clients. Raise RuntimeError the second time."""
        if self._thread.ident is not None or self._stopped.is_set():
            raise RuntimeError("a simulation can be started only once")
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until the story is over, at most ``seconds``. Return whether it is over."""
        return self._is_told.wait(seconds)

    def stop(self) -> None:
        """End all clients after their current calls, and wait for that."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._play())

    async def _play(self) -> None:
        self._over = {move.id: asyncio.Event() for move in self._story.moves() if move.id}
        told = [asyncio.Event() for _ in self._story.workers]
        lives = [
            asyncio.create_task(self._watch(worker, is_told))
            for worker, is_told in zip(self._story.workers, told, strict=True)
        ]
        ending = asyncio.create_task(self._note_end(told))
        await run_in_thread(self._stopped.wait)
        for life in (*lives, ending):
            life.cancel()
        await asyncio.wait(lives)

    async def _note_end(self, told: list[asyncio.Event]) -> None:
        """Send people a message about the remaining work, once all workers have finished."""
        for each in told:
            await each.wait()
        ending = self._say("ending")
        await run_in_thread(self._workspace.members.notify, "", USER, ending)
        self._is_told.set()
        if self._on_end is not None:
            self._on_end(ending)

    async def _watch(self, worker: Worker, is_told: asyncio.Event) -> None:
        try:
            if worker.client:
                await self._live(worker, is_told)
            else:
                await self._edit_by_hand(worker)
        except Exception as error:  # noqa: BLE001  # `errors` has it
            where = extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            self._errors.append(f"{worker.id}: {reason}")
        finally:
            # No step may wait for an ended worker.
            for move in worker.moves:
                if move.id:
                    self._over[move.id].set()
            is_told.set()

    async def _live(self, worker: Worker, is_told: asyncio.Event) -> None:
        random = Random(f"{self._seed}:{worker.id}")
        session = f"{worker.id}-{random.getrandbits(32):08x}"
        client = SimulatedClient(self._workspace, worker.id, worker.client, self._folder, session, random)
        try:
            await self._pause(random.uniform(*_FIRST_PAUSE))
            await client.prompt(self._say(worker.task))
            for move in worker.moves:
                await self._make(client, move, random)
            await client.say(self._say(worker.done))
            while await self._stop(client, is_told):
                await self._pause(random.uniform(*_PAUSE))
                await client.say(self._say("answer"))
            # The client waits at its terminal.
            await asyncio.get_running_loop().create_future()
        except Ended:
            return
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await client.end()
            raise

    async def _stop(self, client: SimulatedClient, is_told: asyncio.Event) -> str:
        """End the turn, and return the prompt of the next turn. The turn's last hook can wait for it."""
        stopping = asyncio.ensure_future(client.stop())
        try:
            while not (stopping.done() or await client.is_idle()):
                await asyncio.wait({stopping}, timeout=_POLL_SECONDS)
            is_told.set()
            return await stopping
        finally:
            stopping.cancel()

    async def _make(self, client: SimulatedClient, move: StoryMove, random: Random) -> None:
        pause = random.uniform(*_PAUSE)
        for each in move.after:
            await self._over[each].wait()
        await self._pause(pause * _READING_SHARE if move.kind == "read" else pause)
        await client.say(self._say(move.say))
        await _call(client, move)
        if move.id:
            self._over[move.id].set()

    async def _edit_by_hand(self, worker: Worker) -> None:
        random = Random(f"{self._seed}:{worker.id}")
        for move in worker.moves:
            for each in move.after:
                await self._over[each].wait()
            await self._pause(random.uniform(*_PAUSE))
            path = self._folder / move.path
            path.write_bytes(path.read_bytes().replace(move.old.encode(), move.new.encode()))
            if move.id:
                self._over[move.id].set()

    def _say(self, key: str) -> str:
        return self._story.say(key, self._workspace.config.language)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._speed if self._speed else 0)


async def _call(client: SimulatedClient, move: StoryMove) -> None:
    if move.kind == "read":
        await client.read(move.path)
    elif move.kind == "edit":
        await client.edit(move.path, move.old, move.new)
    elif move.kind == "run":
        await client.run(move.command)
    elif move.kind == "patch":
        await client.patch(move.text)
    elif move.old:
        await client.rewrite(move.path, move.old, move.new)
    else:
        await client.write(move.path, move.text)
