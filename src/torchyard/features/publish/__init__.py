"""Publication of packages in a channel."""
