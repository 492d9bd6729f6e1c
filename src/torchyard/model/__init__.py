"""Frozen values that every room speaks: identifiers, the matrix, tables, canonical JSON.

Nothing here touches a process, a socket, a clock or a disk; import-linter holds us to it.
"""
