"""One report of everything that is known of a plan."""
