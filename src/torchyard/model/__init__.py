"""Frozen values that every room uses: identifiers, the matrix, tables, canonical JSON.

Nothing here touches a process, a socket, a clock or a disk; import-linter enforces it.
"""
