"""A shell where a job works."""
