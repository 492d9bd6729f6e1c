"""Wheels: metadata, RECORD, platform tags, writing."""
