"""What a channel lacks of a plan."""
