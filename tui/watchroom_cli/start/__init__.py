"""Commands that start something: a workspace, a client, a task, a demo."""
