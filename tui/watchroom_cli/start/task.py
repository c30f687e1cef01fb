"""The command task: run a team of agents on a task."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Event
from typing import TYPE_CHECKING, Final, cast

from watchroom import validation
from watchroom.features.policy.shown_commands import quote_command
from watchroom.model import END_TASK, ENDED, HUMAN_PREFIX, MESSAGE, SPAWN, TERMINATE, USER, Row
from watchroom.texts import LANGUAGES, Catalogue, Language
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.alert_policy import MODES
from watchroom_tui.terminal.session import require_terminal
from watchroom_tui.worker.task_launcher import is_empty_folder

from watchroom_cli.acting_person import name_of_this_person
from watchroom_cli.command import add_utc_argument, collector_paused, print_json
from watchroom_cli.publication import deliver_later
from watchroom_cli.start.dashboard import is_foreign, run_dashboard
from watchroom_cli.start.routine import SCHEDULE_OPTIONS, add_routine, declare_schedule

if TYPE_CHECKING:
    from watchroom.agents.society import Society, SocietyThread
    from watchroom.agents.society.background_thread import Models
    from watchroom.features.tasks.rows import Task
    from watchroom.workspace import Workspace

TEAM_SUFFIX: Final = "-watchroom"
"""The suffix of the team's folder. It is beside the task's folder, where commands of agents cannot reach
it."""
BASE_URL: Final = "https://api.openai.com/v1"
KEYS: Final = ("WATCHROOM_API_KEY", "OPENAI_API_KEY")
_LIMITS: Final = ("depth", "agents", "steps")
_REPORTED_TOOLS: Final = frozenset({MESSAGE, SPAWN, TERMINATE, END_TASK, "end_command"})


def declare_task(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT | -", help=texts("cli.task.text"))
    parser.add_argument("--workspace", metavar="DIR", help=texts("cli.task.workspace"))
    parser.add_argument("--team", metavar="DIR", help=texts("cli.task.team"))
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--model", metavar="NAME", help=texts("cli.task.model"))
    who.add_argument("--simulate", action="store_true", help=texts("cli.task.simulate"))
    parser.add_argument("--base-url", metavar="URL", default=BASE_URL, help=texts("cli.task.base_url"))
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help=texts("cli.task.speed"))
    for limit in _LIMITS:
        parser.add_argument(f"--{limit}", type=int, metavar="N", help=texts(f"cli.task.{limit}"))
    without = parser.add_mutually_exclusive_group()
    without.add_argument("--headless", action="store_true", help=texts("cli.task.headless"))
    without.add_argument("--background", action="store_true", help=texts("cli.task.background"))
    declare_schedule(parser, texts)
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))
    parser.add_argument("--alerts", choices=MODES, default="bell", help=texts("cli.argument.alerts"))
    add_utc_argument(parser, texts)


def run_task(args: Namespace, texts: Catalogue) -> int:
    """Run a new task with the given text until it ends. Run the open tasks if no text is given."""
    if args.every is not None or args.on is not None:
        return add_routine(args, lambda: _team_folder(args, texts), texts)
    if any(getattr(args, each) for each in SCHEDULE_OPTIONS):
        raise WrongUsage(texts("cli.routine.when"))
    root = _team_folder(args, texts)
    text = sys.stdin.read() if args.text == "-" else args.text
    limits = _check_arguments(args, root, text, texts)
    has_dashboard = not (args.headless or args.background)
    if has_dashboard:
        require_terminal(texts, "watchroom task --headless")
    # Slow to load, so loaded after the checks.
    with collector_paused():
        from watchroom.agents.society import Society, SocietyThread
        from watchroom.workspace import Workspace

    with Workspace.open(root, language=args.language, create=text is not None) as workspace:
        if not has_dashboard:
            deliver_later(workspace, args.language)
        workspace.file_watcher.subscribe()
        language = workspace.config.language
        options = [] if args.model is None else ["--model", args.model]
        if options and args.base_url != BASE_URL:
            options += ["--base-url", args.base_url]
        if not workspace.journal.is_shared:
            # Only for a local journal, because the command works only on the machine with the folder.
            workspace.journal.presence.hold(
                resume=quote_command(["watchroom", "task", "--team", root, *options])
            )

        def society(models: Models) -> Society:
            return Society(workspace, models, language=language, asks=not args.headless)

        if text is None:
            tasks = _unfinished(workspace, args, texts)
        else:
            tasks = [_submit(workspace, args, text, limits)]
        print(texts("cli.task.where", root=root), file=sys.stderr)
        models = open_models(args, language, 0.0 if args.headless else args.speed, texts)
        background = SocietyThread(society, models, [each.id for each in tasks], stay=not args.headless)
        if has_dashboard:
            with background:
                status = run_dashboard(
                    workspace.journal, root, args, lambda: workspace, initial_screen="tasks"
                )
            background.result()
            if any(workspace.tasks.is_open(each.id) for each in tasks):
                print(texts("cli.task.later", root=place_word(root)))
            return status
        if args.background:
            print(*(each.id for each in tasks), flush=True)
        ended = follow_tasks(workspace, background, root, texts)
        return _summarize(workspace, ended, root, texts) if args.headless else 0


def _submit(workspace: Workspace, args: Namespace, text: str, limits: Mapping[str, int]) -> Task:
    """Submit and start the task. Raise `InvalidAgentId`, `InvalidWorkspace`, `NotText`."""
    from watchroom.features.tasks.rows import TaskLimits

    person = validation.check_human_name(name_of_this_person() if args.person is None else args.person)
    folder = os.path.abspath(args.workspace)
    task = workspace.tasks.submit(HUMAN_PREFIX + person, text, folder, TaskLimits(**limits), args.model or "")
    workspace.members.start(task)
    return task


def _check_arguments(args: Namespace, root: str, text: str | None, texts: Catalogue) -> dict[str, int]:
    """Check the arguments without changing anything. Return the given limits. Raise `WrongUsage`,
    `InvalidWorkspace`."""
    from watchroom.features.tasks.folder import check_task_folder

    if text is not None and not text.strip():
        raise WrongUsage(texts("cli.task.no_text"))
    limits = {limit: getattr(args, limit) for limit in _LIMITS if getattr(args, limit) is not None}
    if any(most < 1 for most in limits.values()) or args.speed < 0:
        raise WrongUsage(texts("cli.task.not_positive"))
    if text is None and limits:
        raise WrongUsage(texts("cli.task.limits"))
    if args.model is None and args.base_url != BASE_URL:
        raise WrongUsage(texts("cli.task.no_model"))
    if text is not None:
        folder = check_task_folder(os.path.abspath(args.workspace), root)
        if args.model is None and not args.simulate:
            raise WrongUsage(texts("cli.task.which_developers"))
        if args.simulate and not is_empty_folder(folder):
            raise WrongUsage(texts("cli.task.simulate_not_empty", folder=sanitize(folder)))
    return limits


def _team_folder(args: Namespace, texts: Catalogue) -> str:
    if args.team:
        root: str = os.path.abspath(args.team)
    elif args.workspace:
        root = os.path.realpath(args.workspace) + TEAM_SUFFIX
    else:
        raise WrongUsage(texts("cli.task.which"))
    if args.text is not None and not args.workspace:
        raise WrongUsage(texts("cli.task.no_workspace"))
    if is_foreign(root):
        raise WrongUsage(texts("cli.task.not_empty", root=root))
    return root


def _unfinished(workspace: Workspace, args: Namespace, texts: Catalogue) -> list[Task]:
    """Return the open tasks, and the ended tasks with working agents. Raise `WrongUsage`."""
    found = [each for each in workspace.tasks.list() if each.status == "open" or _is_at_work(workspace, each)]
    if not found:
        raise WrongUsage(texts("cli.task.none_open"))
    models = {each.model for each in found} - {""}
    if models and args.model is None:
        raise WrongUsage(texts("cli.task.which_model", models=", ".join(sorted(models))))
    return found


def _is_at_work(workspace: Workspace, task: Task) -> bool:
    """Return whether a session of the task is open."""
    sessions = workspace.sessions
    members = workspace.members.of_task(task.id)
    return any(head.status not in ENDED for each in members for head in sessions.list(each.id))


def open_models(
    args: Namespace, language: Language, speed: float, texts: Catalogue
) -> Callable[[], AbstractAsyncContextManager[Models]]:
    """Return a function that opens the models: one model for all members, or simulated models."""
    if args.model is None:
        print(texts("cli.task.simulated"), file=sys.stderr)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Models]:
        if args.model is None:
            from watchroom.agents.simulation import developer

            yield lambda member: developer(member, language, speed=speed)
            return
        from watchroom.features.sessions.runtime.models import OpenAICompatible

        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        async with OpenAICompatible(args.base_url, args.model, api_key=key) as model:
            yield lambda member: model

    return opened


def follow_tasks(
    workspace: Workspace, background: SocietyThread, root: str, texts: Catalogue
) -> tuple[Task, ...]:
    """Print the news of the tasks on standard error. Return the tasks at the end."""
    news = Event()
    forget = workspace.subscribe(news.set)
    seq = workspace.journal.last_seq()
    try:
        with background:
            is_done = False
            while not is_done:
                is_done = background.wait(0)
                if not is_done:
                    news.wait(1.0)
                    news.clear()
                while rows := workspace.journal.rows(seq):
                    seq = rows[-1].seq
                    _print_rows(rows, texts)
    except KeyboardInterrupt:
        print(texts("cli.task.later", root=place_word(root)), file=sys.stderr)
        raise
    finally:
        forget()
    return background.result()


def _summarize(workspace: Workspace, ended: Sequence[Task], root: str, texts: Catalogue) -> int:
    """Print a summary of each task. Return 0 if all tasks are done and the workspace has no problems."""
    workspace.flush()
    problems = workspace.verify()
    for task in ended:
        print_json(_summary(workspace, task, len(problems)))
        if task.status == "open":
            print(texts("cli.task.waits", root=place_word(root)), file=sys.stderr)
    return 0 if not problems and all(each.status == "done" for each in ended) else 1


def _print_rows(rows: list[Row], texts: Catalogue) -> None:
    for row in rows:
        if row.tool not in _REPORTED_TOOLS or row.outcome != "ok":
            continue
        who = sanitize(row.actor)
        if row.tool == "end_command":
            what = f"$ {sanitize(row.message)}  → {row.detail.get('exit_code')}"
        else:
            to = texts("cli.task.you") if row.path == USER else sanitize(row.path)
            what = texts(f"cli.task.row.{row.tool}", to=to, text=sanitize(row.message)).rstrip()
        print(f"{who}: {what}", file=sys.stderr, flush=True)


def _summary(workspace: Workspace, task: Task, problems: int) -> dict[str, object]:
    journal = workspace.journal
    end = workspace.tasks.end_row(task.id)
    files = [head.path.partition("/")[2] for head in journal.heads("file", f"{task.id}/") if not head.deleted]
    members = [each.id for each in workspace.members.of_task(task.id)]
    details = [head.row.detail for each in members for head in workspace.sessions.list(each)]
    used = [detail["tokens"] for detail in details]
    return {
        "task": task.id,
        "status": task.status,
        "report": end.message if end else "",
        "workspace": task.folder,
        "agents": members,
        "tokens": [sum(counts) for counts in zip(*used, strict=True)],
        "tokens_estimated": sum(cast("int", detail.get("estimated", 0)) for detail in details),
        "commands": sum(1 for _ in journal.heads("command", f"{task.id}/")),
        "files": files,
        "verify": problems or "clean",
    }
