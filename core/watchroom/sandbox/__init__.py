"""The folders of tasks, and the sandboxes that commands run in there (TASKS)."""
