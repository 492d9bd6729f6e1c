"""Smoke tests: install a package into fresh environments, and run plain test files in them."""
