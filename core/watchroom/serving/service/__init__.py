"""The resident service: one process for each user that serves every workspace in use.

- `http`: requests on the socket, their limits, and their answers.
- `workspaces`: the open workspaces and their attached clients.
- `hooks`, `relays`: the requests of clients.
- `service`: the process: socket, lock, idle time, status and end.

Clients connect with `watchroom.agents.clients.client_program`.
"""
