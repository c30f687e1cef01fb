"""What the dashboard and the command line show alike: texts made safe, languages, themes."""
