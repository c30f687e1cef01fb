"""The command resume: resume the session of an agent on this machine after its process is lost."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from watchroom.features.policy.shown_commands import quote_word
from watchroom.kernel.journal import is_server_address
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import refuse_agents
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.publication import deliver_later
from watchroom_cli.start.task import BASE_URL, follow_tasks, open_models

if TYPE_CHECKING:
    from watchroom.agents.society import Society
    from watchroom.agents.society.background_thread import Models
    from watchroom.features.sessions.runtime import AgentState
    from watchroom.features.sessions.runtime.sessions import SessionHead
    from watchroom.workspace import Workspace


def declare_resume(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("session", metavar="SESSION", help=texts("cli.resume.session"))
    parser.add_argument("--model", metavar="NAME", help=texts("cli.resume.model"))
    parser.add_argument("--base-url", metavar="URL", default=BASE_URL, help=texts("cli.task.base_url"))
    parser.add_argument("--checkout", metavar="DIR", help=texts("cli.argument.checkout"))


def run_resume(args: Namespace, texts: Catalogue) -> int:
    """Resume the session or its task. Return 1 unless the session or task is then done."""
    refuse_agents(args.dir)
    if args.checkout and not is_server_address(args.dir):
        raise WrongUsage(texts("cli.open.checkout_of_database"))
    # Slow to load, so loaded after the checks.
    from watchroom.agents.society.resuming import client_of, find_session, find_task
    from watchroom.errors import SessionOfClient
    from watchroom.workspace import Workspace

    with Workspace.open(args.dir, create=False, scan=False, checkout=args.checkout) as workspace:
        deliver_later(workspace, args.language)
        workspace.file_watcher.subscribe()
        # Look for a task first, because its agents have no open session between two messages.
        task = find_task(workspace, args.session)
        if task is not None:
            if task.model and args.model is None:
                raise WrongUsage(texts("cli.resume.no_model", model=quote_word(task.model, "NAME")))
            return _resume_task(workspace, task.id, args, texts)
        session = find_session(workspace, args.session)
        client = client_of(workspace, session)
        if client:
            raise SessionOfClient(session=session.row.path, client=client)
        if args.model is None:
            raise WrongUsage(texts("cli.resume.no_model", model="NAME"))

        def on_start() -> None:
            print(texts("cli.resume.goes_on", session=sanitize(session.row.path)), file=sys.stderr)

        models = open_models(args, workspace.config.language, 0.0, texts)
        state = asyncio.run(_resume(workspace, session, models, on_start))
    print("\n".join(sanitize_lines(state.messages[-1].content if state.messages else "")))
    return 0 if state.status == "done" else 1


async def _resume(
    workspace: Workspace,
    session: SessionHead,
    models: Callable[[], AbstractAsyncContextManager[Models]],
    on_start: Callable[[], None],
) -> AgentState:
    from watchroom.agents.society.resuming import resume_session
    from watchroom.features.tasks.rules import Member

    async with models() as model_of:
        # Any member is right, because all members use the same model.
        member = Member(session.agent, "", "bottom", "", "", 0, None, None)
        return await resume_session(workspace, session, model_of(member), on_start)


def _resume_task(workspace: Workspace, task: str, args: Namespace, texts: Catalogue) -> int:
    """Resume all agents of ``task``, because one process runs them together."""
    from watchroom.agents.society import Society, SocietyThread

    language = workspace.config.language

    def society(models: Models) -> Society:
        return Society(workspace, models, language=language, asks=True)

    models = open_models(args, language, 0.0, texts)
    ended = follow_tasks(workspace, SocietyThread(society, models, [task]), args.dir, texts)
    return 0 if all(each.status == "done" for each in ended) else 1
