"""Indexes as bytes: simple indexes, conda channels, listings and pages, written and read.

No module here uses the disk or the network. A page is a pure function of its entries.
"""
