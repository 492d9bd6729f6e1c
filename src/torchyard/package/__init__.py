"""Packages: wheels, conda packages and zips, and the ELF files in them."""
