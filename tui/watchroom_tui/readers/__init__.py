"""Readers of the data of a screen from the journal, outside of the event loop."""
