"""The command line: commands parse, call a use case, print and exit."""
