"""Smoke tests: whether packages can be installed, and work."""
