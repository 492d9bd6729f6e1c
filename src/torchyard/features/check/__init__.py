"""Checks of packages against rules."""
