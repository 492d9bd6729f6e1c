"""Where the time of a build went."""
