"""Changes of a channel: promote, yank, rollback, pin, prune."""
