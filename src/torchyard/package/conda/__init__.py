"""Conda packages: metadata, layout, reading, writing."""
