"""Queries of Buildbot's database, and values that all masters share there."""
