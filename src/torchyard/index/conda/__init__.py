"""Conda channels: repodata and shards, written and read."""
