"""Packages that are built again, and compared."""
