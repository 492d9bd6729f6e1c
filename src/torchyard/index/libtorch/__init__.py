"""Listings of libtorch zips, written and read."""
