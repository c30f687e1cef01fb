"""Launcher of tasks in their own processes, which continue when the dashboard ends."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
from threading import Thread
from typing import IO, Final, NamedTuple

from watchroom import validation
from watchroom.errors import WatchroomError
from watchroom.texts import Catalogue, Language

from watchroom_tui.presentation.sanitize import sanitize

MOST_TEXT: Final = 20_000
"""Maximum number of characters of a task. The arguments of a process are limited, and readable by every
process."""
MOST_NAME: Final = 200
"""Maximum number of characters of a model's name."""
WAIT_SECONDS: Final = 20.0
"""Seconds to wait for the process to report the start of the task."""
_MOST_OUTPUT: Final = 4000
"""Maximum bytes of a failed process's output to show."""


class TaskOrder(NamedTuple):
    """A task entered by a person.

    - ``text``: the instruction, a sentence or more.
    - ``folder``: the folder to work in. A missing folder is created.
    - ``model``: the model of the agents, on an OpenAI-compatible server.
    - ``is_simulated``: whether simulated developers work instead of a model. They need an empty folder.
    """

    text: str
    folder: str
    model: str = ""
    is_simulated: bool = False


class LaunchedTask(NamedTuple):
    """A started task.

    - ``id``: the id of the task, empty if the process did not report it within `WAIT_SECONDS`.
    - ``process``: the id of the process that runs the task.
    - ``output``: the path of the file with the output of the process.
    """

    id: str
    process: int
    output: str


class TaskNotLaunched(Exception):
    """Error: the task was not started. The text is the reason, for people."""


def check_order(order: TaskOrder, root: str, texts: Catalogue, language: Language) -> TaskOrder:
    """Return ``order`` without surrounding blanks, with the absolute path of its folder. Create no folder.

    ``root``: the folder of the workspace of the team. Raise `TaskNotLaunched` if the task cannot be started,
    and OSError if the folder cannot be listed.
    """
    from watchroom.features.tasks.folder import check_task_folder

    text, model = order.text.strip(), order.model.strip()
    if not text or text == "-":
        raise TaskNotLaunched(texts("cli.task.no_text"))
    if len(text) > MOST_TEXT or "\0" in text or not validation.is_unicode(text):
        raise TaskNotLaunched(texts("task_launcher.text", most=MOST_TEXT))
    if len(model) > MOST_NAME or not (model.isprintable() and validation.is_unicode(model)):
        raise TaskNotLaunched(texts("task_launcher.model", most=MOST_NAME))
    if not order.folder.strip():
        raise TaskNotLaunched(texts("task_launcher.folder"))
    try:
        folder = check_task_folder(os.path.abspath(os.path.expanduser(order.folder.strip())), root)
    except WatchroomError as error:
        raise TaskNotLaunched(f"{error.message(language)} {error.suggestion(language)}") from error
    if order.is_simulated == bool(model):
        raise TaskNotLaunched(texts("task_launcher.which_developers"))
    if order.is_simulated and not is_empty_folder(folder):
        raise TaskNotLaunched(texts("cli.task.simulate_not_empty", folder=sanitize(folder)))
    return TaskOrder(text, folder, model, order.is_simulated)


def is_empty_folder(path: str) -> bool:
    """Return whether the folder ``path`` is empty or missing. Raise OSError."""
    return not os.path.exists(path) or not os.listdir(path)


def launch_task(
    order: TaskOrder, root: str, person: str, texts: Catalogue, language: Language, *, speed: float = 1.0
) -> LaunchedTask:
    """Start ``order`` for ``person`` with the team of the workspace at ``root``, in a process with its own
    session. Wait at most `WAIT_SECONDS` for the process to report the task. Do not call it on an event loop.

    ``speed``: the speed of simulated developers. Raise `TaskNotLaunched` as `check_order` does, and with the
    output of the process if the process ended. Raise OSError if the process cannot be started.
    """
    checked = check_order(order, root, texts, language)
    command = [sys.executable, "-P", "-m", "watchroom_cli.main", "task", "--background"]
    command += [f"--workspace={checked.folder}", f"--team={os.path.abspath(root)}", f"--as={person}"]
    command += [f"--language={language}", f"--speed={speed}"]
    command += ["--simulate"] if checked.is_simulated else [f"--model={checked.model}"]
    descriptor, output = tempfile.mkstemp(prefix="watchroom-task-", suffix=".log")
    with open(descriptor, "wb") as log:
        process = subprocess.Popen(
            [*command, "--", checked.text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=root,
            start_new_session=True,
        )
    # Without a wait, an ended process would count as running.
    Thread(target=process.wait, name="watchroom-task", daemon=True).start()
    task = _read_id(process)
    if task is None:
        raise TaskNotLaunched(_last_words(output) or texts("task_launcher.ended", status=process.wait()))
    return LaunchedTask(task, process.pid, output)


def _read_id(process: subprocess.Popen[bytes]) -> str | None:
    """Return the id of the task reported by the process. Empty after `WAIT_SECONDS` without a report, None if
    the process ended."""
    stream = process.stdout
    if stream is None:
        raise RuntimeError("the process was started without a pipe")
    with stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        if not selector.select(WAIT_SECONDS):
            return ""
        line = _read_line(stream)
    return line.strip() or None


def _read_line(stream: IO[bytes]) -> str:
    return stream.readline().decode(errors="replace")


def _last_words(output: str) -> str:
    """Return the end of the output of a failed process, and remove its file."""
    with open(output, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _MOST_OUTPUT))
        said = file.read().decode(errors="replace").strip()
    os.unlink(output)
    return said.removeprefix("watchroom: ")
