"""Typed, bounded reads of details: what a front end shows of a row, a file, a session, a request and so on.

Each function takes the journal first and reads it where it is called, so call it in a thread. Results are
immutable. Each module stands for itself: import what you need, and nothing else is loaded.

    from watchroom.queries.versions import read_history, read_text
    rows = read_history(workspace.journal, head)
    print(read_text(workspace.journal, rows[0]))
"""
