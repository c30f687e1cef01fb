"""The agents of a workspace: clients by other vendors, the society of a task, simulated agents, and adapters.

- `clients`: hooks, configuration and processes of Claude Code, Codex, opencode and ACP clients.
- `society`: runs the agents of a task until the task ends.
- `simulation`: plays a scenario with scripted agents.
- `adapters`: the toolbox for other frameworks.
"""
