"""Alerts: messages outside of the dashboard (webhook, Slack, ntfy, Apprise) that needs are open or ended.

`rules.py` reads the configuration and plans which messages are due. Each message that was sent or given up is
a row (`rows.py`), which `Alerts` in `service.py` writes and reads, so no alert is sent twice. `payloads.py`
makes a message, `delivery.py` delivers it, and `sender.py` does both for all targets. `keeper.py` decides
whether this process sends: the service does; without one, one of the processes with an open workspace does.
Start with `plan_alerts` in `rules.py`.
"""
