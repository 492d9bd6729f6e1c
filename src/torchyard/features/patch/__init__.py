"""Corrections of conda packages in a channel."""
