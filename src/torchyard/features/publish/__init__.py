"""Packages into a channel."""
