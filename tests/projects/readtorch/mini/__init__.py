"""A module."""

PARTS = 1
