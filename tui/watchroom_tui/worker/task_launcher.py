"""Starts a task in its own process, which continues when the dashboard ends."""

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
"""Max characters of a task. Arguments of processes are limited, and every process can read them."""
MOST_NAME: Final = 200
"""Max characters of a model's name."""
WAIT_SECONDS: Final = 20.0
"""Seconds to wait for the process to report that the task has started."""
_MOST_OUTPUT: Final = 4000
"""Max bytes of a failed process's output that are shown."""


class TaskOrder(NamedTuple):
    """A task that a person enters.

    - ``text``: what to do, a sentence or more.
    - ``folder``: the folder to work in. It is created if it is missing.
    - ``model``: the agents' model, on an OpenAI-compatible server.
    - ``is_simulated``: whether simulated developers work instead of a model. They need an empty folder.
    """

    text: str
    folder: str
    model: str = ""
    is_simulated: bool = False


class LaunchedTask(NamedTuple):
    """A started task.

    - ``id``: its id, empty if the process did not report it in `WAIT_SECONDS`.
    - ``process``: the id of the process that runs it.
    - ``output``: the path of the file with the process's output.
    """

    id: str
    process: int
    output: str


class TaskNotLaunched(Exception):
    """The reason why a task was not started, for people."""


def check_order(order: TaskOrder, root: str, texts: Catalogue, language: Language) -> TaskOrder:
    """Return ``order`` without surrounding blanks, with the absolute path of its folder. Create nothing.

    ``root``: the folder of the workspace whose team works on it. Raises `TaskNotLaunched` if it cannot be
    started.
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
    """Return whether nothing is in the folder ``path``, or it is missing. Raises OSError."""
    return not os.path.exists(path) or not os.listdir(path)


def launch_task(
    order: TaskOrder, root: str, person: str, texts: Catalogue, language: Language, *, speed: float = 1.0
) -> LaunchedTask:
    """Start ``order`` for ``person`` with the team of the workspace at ``root``, in a process with its own
    session. Wait until it reports the task, at most `WAIT_SECONDS`: do not call it on an event loop.

    ``speed``: of simulated developers. Raises `TaskNotLaunched` as `check_order` does, and with the process's
    output if it ended. Raises OSError if the process cannot be started.
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
    # A process that ended and was not waited for would count as running.
    Thread(target=process.wait, name="watchroom-task", daemon=True).start()
    task = _read_id(process)
    if task is None:
        raise TaskNotLaunched(_last_words(output) or texts("task_launcher.ended", status=process.wait()))
    return LaunchedTask(task, process.pid, output)


def _read_id(process: subprocess.Popen[bytes]) -> str | None:
    """Return the id of the task that the process reports: empty if it reports none yet, None if it ended."""
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
    """Return the end of a failed process's output, and remove its file."""
    with open(output, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _MOST_OUTPUT))
        said = file.read().decode(errors="replace").strip()
    os.unlink(output)
    return said.removeprefix("watchroom: ")
