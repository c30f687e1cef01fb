"""The features of Watchroom, one folder for each noun.

Each folder has the following files that its feature needs:

- `rows.py`: the meaning of the feature's rows.
- `rules.py`: pure decisions.
- `service.py`: performs operations, and writes rows.
- `view.py`: the feature's part of the dashboard's model.
- `reads.py`: details for front ends.
- `tools.py`: the tools of agents and people.

`services.Services` makes all services of a workspace.
"""
