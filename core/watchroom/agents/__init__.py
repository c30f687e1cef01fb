"""Who works in a workspace: clients of other makers, the society of a task, simulated agents, and adapters.

- `clients`: Claude Code, Codex, ACP clients: their hooks, configuration and processes.
- `society`: runs the agents of a task until the task ends.
- `simulation`: plays a scenario with scripted agents.
- `adapters`: the toolbox for other frameworks.
"""
