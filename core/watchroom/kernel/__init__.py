"""What every feature stands on. The kernel knows no feature.

- `journal`: the rows, on SQLite or PostgreSQL.
- `commit`: drafts of several threads become one durable append.
- `checkout`: the rows as files, and external edits as rows.
- `background`: the threads that follow rows, run jobs and timers.
- `call_context`: who acts, and on behalf of which tool call.
- `tools`: how a tool is declared.
"""
