"""Nightly and daily runs, started by the clock."""
