"""Packages that are rebuilt and compared."""
