"""From build trees to packages: vendor, strip, rewrite, check."""
