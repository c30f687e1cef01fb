"""The folders of tasks, and the sandboxes in which their commands run (TASKS)."""
