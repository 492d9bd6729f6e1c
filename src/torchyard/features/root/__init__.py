"""Roots: systems to build in."""
