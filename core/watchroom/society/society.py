"""Runs the agents of a task, each in a session of its own, until the task has ended.

Whoever makes, writes to or ends an agent does so by rows, in any process; a society is notified of them and
updates the sessions. Whatever ends its process, the next one goes on from the rows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from watchroom.rules.members import Member
from watchroom.runtime import Limits, ModelRuntime, RuntimeConfig
from watchroom.society.task_runner import TaskRunner
from watchroom.texts import Language
from watchroom.zones import Task, TaskLimits

if TYPE_CHECKING:
    from watchroom.workspace import Workspace


class Society:
    """The agents of ``workspace`` that work on tasks.

    ``models`` returns the model of an agent; ``language`` is that of prompts and messages (default: the
    workspace's). With ``asks`` an agent may ask people and wait for the answer, ``ask_timeout`` seconds at
    most.

        society = Society(workspace, lambda member: model)
        task = society.submit_requirement("Build a calculator.", "/srv/calculator", by="human:dana")
        task = await society.run(task.id)
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Callable[[Member], ModelRuntime],
        *,
        language: Language | None = None,
        asks: bool = False,
        ask_timeout: float | None = None,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._language = language
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
        """Submit a task of the person ``by`` (``human:NAME``), which says ``text``; its first agent is made,
        and begins with `run`. ``workspace_path`` is the folder to work in, ``limits`` and ``model`` are
        recorded with the task. Returns the task. Raises as `Tasks.submit` does."""
        task = self._workspace.tasks.submit(by, text, workspace_path, limits, model)
        self._workspace.members.start(task)
        return task

    async def run(self, task: str, *, stay: bool = True) -> Task:
        """Run the agents of the task with the id ``task`` until it has ended. Returns it as it is then.

        Without ``stay`` it also returns when no agent has anything left to do, as when all wait for people.
        Raises `TaskNotFound`, and `TaskInUse` where they run already, here or in another process.
        """
        with self._workspace.tasks.claim(task):
            return await self._run(task, stay=stay)

    async def _run(self, task: str, *, stay: bool) -> Task:
        found = await asyncio.to_thread(self._workspace.tasks.find, task)
        if found.status == "open":
            await asyncio.to_thread(self._workspace.members.start, found)
        limits = Limits(steps=found.limits.steps)
        language = self._language or self._workspace.config.language
        config = RuntimeConfig(limits=limits, language=language, ask_timeout=self._ask_timeout)
        runner = TaskRunner(self._workspace, found, self._models, config, asks=self._asks)
        await runner.run(stay=stay)
        return await asyncio.to_thread(self._workspace.tasks.find, task)
