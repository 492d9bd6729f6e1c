"""Simple indexes (PEP 503, PEP 691): pages written and read."""
