"""Sessions: agents work step by step, and people pause, resume, cancel and write to them (RUN).

Each step of a session is a row, written by Watchroom's runtime or by the session of a client.
`SessionRecords` in `service` writes and reads these rows, `Messages` delivers messages to agents, and
`StoppedAgents` pauses agents together. `rows` defines what the rows contain, and `rules` decides who is
stopped and to whom a row is delivered. `runtime` runs an agent: `Session` takes its steps, and `Sessions`
begins and resumes sessions. Start reading in `service`, then in `runtime/session`.
"""
