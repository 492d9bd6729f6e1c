"""Compute platforms: support for each vendor's GPUs, in one module or folder per vendor."""
