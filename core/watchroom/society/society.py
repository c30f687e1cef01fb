"""Runs the agents of a task, each in a session of its own, until the task has ended.

Who makes, writes to or ends an agent does so by rows, in whichever process; a society hears of them and lets
the sessions follow. Whatever ends its process, the next one goes on from the rows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from watchroom.rules.members import Member
from watchroom.runtime import ModelRuntime
from watchroom.society.task_runner import Team
from watchroom.society.workplace import Workplace
from watchroom.texts import Language
from watchroom.zones import Task, TaskLimits


class Society:
    """The agents of ``workplace``. ``models`` gives the model that one of them thinks with.

    With ``asks`` an agent may ask people and wait for the answer, ``ask_timeout`` seconds at most.
    """

    def __init__(
        self,
        workplace: Workplace,
        models: Callable[[Member], ModelRuntime],
        *,
        language: Language = "en",
        asks: bool = False,
        ask_timeout: float | None = None,
    ) -> None:
        self._workplace = workplace
        self._models = models
        self._language: Language = language
        self._asks = asks
        self._ask_timeout = ask_timeout

    def submit_requirement(
        self,
        text: str,
        workspace_path: str | os.PathLike[str] | None = None,
        *,
        by: str,
        limits: TaskLimits = TaskLimits(),  # noqa: B008  # immutable
        model: str = "",
    ) -> Task:
        """Begin a task of ``by`` (``human:NAME``): its first agent is made and told ``text``; `run` lets it
        begin. Raises as `Tasks.submit` does."""
        task = self._workplace.tasks.submit(by, text, workspace_path, limits, model)
        self._workplace.members.start(task)
        return task

    async def run(self, task: str, *, stay: bool = True) -> Task:
        """Let the agents of a task work until it has ended; gives the task as it stands then.

        Without ``stay`` it also returns when none has anything left to do, as when all wait for people.
        Raises `TaskNotFound`, and `TaskInUse` where they are at work already, here or in another process.
        """
        with self._workplace.tasks.claim(task):
            return await self._run(task, stay=stay)

    async def _run(self, task: str, *, stay: bool) -> Task:
        found = await asyncio.to_thread(self._workplace.tasks.find, task)
        if found.status == "open":
            await asyncio.to_thread(self._workplace.members.start, found)
        team = Team(
            self._workplace,
            found,
            self._models,
            language=self._language,
            asks=self._asks,
            ask_timeout=self._ask_timeout,
        )
        await team.work(stay=stay)
        return await asyncio.to_thread(self._workplace.tasks.find, task)
