"""Routines: a person has an agent start regularly, or when a file or a git ref changes.

`rows` has the vocabulary. `rules` decides when a routine is due. `Routines` in `service` records routines and
their runs. The service starts the runs (`watchroom.agents.clients.routine_run`). Start reading at `rules`.
"""
