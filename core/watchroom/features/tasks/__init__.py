"""Tasks: the requirements of people, the agents that work on them, and the folders and commands of tasks
(TASKS).

`Tasks` begins and ends tasks, and binds each one to a folder. `Members` spawns and ends their agents, and
sends messages. `TaskFiles` reads and writes the files of the folder, and records every version of them.
`Commands` runs commands there in a sandbox. `TaskProjection` is a part of the dashboard's model. Start with
``rows.py``, then ``service.py`` and ``files.py``.
"""
