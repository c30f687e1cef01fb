"""Processes beside the dashboard: one for diffs and parsing, so that the event loop stays free, and tasks."""
