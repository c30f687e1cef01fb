"""Requests of agents to people, and the answers.

`Request` and `Answer` in `rows` are the contents of a request's rows; `check_answer` decides whether an
answer is valid. `Requests` in `service` opens, answers and ends requests, so that exactly one answer counts.
`open_requests` counts the open requests of an agent, whose number is limited.
`rules` derives the text that a call would write from its arguments, for people who review it. `tools` has the
tool with which people answer. Start reading at `rows.Request`.
"""
