"""Reports of commands that change a channel."""
