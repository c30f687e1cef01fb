"""Have the person begin a task, from any screen, and go to it."""

from __future__ import annotations

from typing import Final

from watchroom.features.trees.place import repository_of

from watchroom_tui.context import Dashboard, TaskTarget
from watchroom_tui.dialogs.new_task import NewTask, NewTaskDialog, NewTaskRefused
from watchroom_tui.dialogs.text_input import TextDraft
from watchroom_tui.services.task_launcher import TaskNotLaunched, TaskOrder, launch_task

_DRAFT: Final = "new task"


async def begin_task(app: Dashboard) -> None:
    """Ask for a task, begin it in a process of its own, and show it. Await it in a worker."""
    workspace = await app.wait_for_workspace()
    if workspace is None:
        app.explain_read_only()
        return
    root = str(workspace.root)

    def begin(task: NewTask) -> str:
        order = TaskOrder(task.text, task.folder, task.model, task.is_simulated)
        try:
            return launch_task(order, root, app.person, app.texts, app.language).id
        except TaskNotLaunched as error:
            raise NewTaskRefused(str(error)) from error
        except OSError as error:
            raise NewTaskRefused(app.texts("new_task.not_started", reason=error.strerror or error)) from error

    draft = app.drafts.find(TextDraft, _DRAFT) or TextDraft(_DRAFT, app.texts("new_task.title"))
    app.drafts.keep(_DRAFT, draft)
    # Beside the workspace or the repository: a task's folder holds none of its files.
    place = repository_of(root)
    folder = f"{root if place is None else place.main}-task-{len(app.model.tasks) + 1}"
    begun = await app.push_screen_wait(NewTaskDialog(draft, folder, begin))
    if begun is not None or not draft.is_begun:
        app.drafts.drop(TextDraft, _DRAFT)
    if begun is not None:
        app.show_message(app.texts("new_task.begun"))
        await app.navigator.go_to("tasks", TaskTarget(begun))
