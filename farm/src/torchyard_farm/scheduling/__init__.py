"""Decisions without Buildbot: which job is next, where, how often, and what its end means."""
