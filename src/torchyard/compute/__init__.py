"""Compute platforms: everything that one vendor's GPUs need, in one module or folder each."""
