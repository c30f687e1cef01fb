"""Alerts: messages outside of the dashboard (webhook, Slack, ntfy, Apprise) that needs are open or ended.

`rules.py` reads the configuration and plans which messages are due. Each message that was sent or given up is
a row (`rows.py`), which `Alerts` in `service.py` writes and reads, so no alert is sent twice. The dashboard's
package sends them (`watchroom_cli.plain.alert_sender`). Start with `plan_alerts` in `rules.py`.
"""
