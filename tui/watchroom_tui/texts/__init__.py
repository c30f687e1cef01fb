"""The catalogues of the dashboard and the command line."""
