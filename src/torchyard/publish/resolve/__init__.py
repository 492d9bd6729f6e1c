"""Which package of a channel fits a machine."""
