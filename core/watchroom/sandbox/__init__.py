"""The folders of tasks, and the sandboxes that commands run in there (spec 2)."""
