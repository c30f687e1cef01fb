"""A server of the Model Context Protocol, with which agents in other programs work in a workspace.

`make_server` in `server` turns a `Toolbox` into a server; `stdio` and `http` are its transports. `approvals`
asks people to approve calls, in the client or in the dashboard. `resources` offers shared files and boards as
resources. `malformed_messages` answers lines that are not valid messages. Start reading in `server`.
"""
