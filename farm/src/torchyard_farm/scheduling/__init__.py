"""Decisions without Buildbot: the next job, its machine, its retries, and its verdict."""
