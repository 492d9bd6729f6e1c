"""The command line: one file for each command; parse, wire, catch, exit."""
