"""Alerts: which needs are announced, when, and how a terminal is told."""
