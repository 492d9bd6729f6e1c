"""Trying a package out: installed into fresh environments, and put to plain test files."""
