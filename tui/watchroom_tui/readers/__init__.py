"""Read what a screen shows from the journal, off the event loop."""
