"""Alerts: which needs to announce, when, and how to notify a terminal."""
