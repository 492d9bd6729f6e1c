"""Everything that is known of a plan."""
