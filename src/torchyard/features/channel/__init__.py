"""Changes of a channel: what is yanked, rolled back, pinned or pruned."""
