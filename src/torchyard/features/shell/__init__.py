"""A shell in a job's directory."""
