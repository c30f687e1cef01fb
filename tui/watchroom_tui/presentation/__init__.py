"""Presentation shared by the dashboard and the command line: sanitized texts, languages, themes."""
