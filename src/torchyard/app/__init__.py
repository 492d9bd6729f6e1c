"""Use cases: the functions that the command line, plug-ins and scripts call.

Nothing here parses a command line or prints: results are returned, and progress goes to the
listeners and meters that the caller passes in.
"""
