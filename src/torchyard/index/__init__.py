"""Indexes as bytes: simple indexes, conda channels, listings and pages, written and read.

Nothing here asks a disk or a network. A page is a function of entries; what it says of a file is
what its entry says.
"""
