"""Checking any index: simple, conda or libtorch listings."""
