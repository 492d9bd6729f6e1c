"""The results in a store."""
