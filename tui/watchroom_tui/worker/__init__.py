"""Processes beside the dashboard: a process for diffs and parsing, which keeps the event loop free, and the
processes of tasks."""
