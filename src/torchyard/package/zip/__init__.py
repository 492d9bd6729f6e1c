"""Zip archives: strict reading, reproducible writing, raw copies."""
