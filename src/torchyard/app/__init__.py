"""Use cases: what the command line, plug-ins and scripts call."""
