"""Handoffs: files that one agent delivers to the inbox of another (FILES-2).

`Handoffs` in `service.py` delivers, lists, reads and acknowledges them. `tools.py` has these operations as
tools for agents. A `Delivery` (`rows.py`) is one handoff and its progress: delivered, read, acknowledged. A
later delivery of the same file replaces the earlier one on disk; the journal keeps every version. Start with
`rows.py`.
"""
