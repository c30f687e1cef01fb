"""The features of Watchroom, one folder for each noun.

A folder has the same files, as far as the feature needs them:

- `rows.py`: what the feature's rows mean.
- `rules.py`: pure decisions.
- `service.py`: acts, and writes rows.
- `view.py`: the feature's part of the dashboard's model.
- `reads.py`: details for front ends.
- `tools.py`: the tools of agents and people.

`services.Services` makes all services of a workspace.
"""
