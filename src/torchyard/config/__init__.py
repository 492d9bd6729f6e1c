"""Reads `torchyard.toml` and the shipped tables into models; every value records its origin."""
