"""Commands that begin: a workspace, a client, a task, a demo."""
