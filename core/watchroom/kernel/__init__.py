"""The common base of all features. The kernel does not depend on any feature.

- `journal`: the rows, on SQLite or PostgreSQL.
- `commit`: drafts of several threads become one durable append.
- `checkout`: the rows as files, and external edits as rows.
- `background`: the threads that deliver new rows and run jobs and timers.
- `call_context`: the actor and the tool call of an operation.
- `tools`: the declaration of tools.
"""
