"""Find the package of a channel that fits a machine."""
