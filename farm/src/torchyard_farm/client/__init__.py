"""The client of a master's web API, for commands that follow and list plans."""
