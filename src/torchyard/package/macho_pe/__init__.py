"""Mach-O and PE files, read by lief."""
