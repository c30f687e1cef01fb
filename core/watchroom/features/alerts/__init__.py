"""Alerts: messages outside the dashboard about open and ended needs (webhook, Slack, ntfy, Apprise,
plug-ins).

- `rules.py`: reads the configuration and plans the messages that are due. Start with `plan_alerts`.
- `rows.py`: the rows that record each message that was sent or given up.
- `service.py`: `Alerts` writes and reads these rows, so that no alert is sent twice.
- `payloads.py`: makes a message.
- `delivery.py`: delivers a message.
- `plugins.py`: the targets of other packages.
- `sender.py`: makes and delivers the messages for all targets.
- `keeper.py`: decides whether this process sends. The service sends if it runs; otherwise a process with an
  open workspace does.
"""
