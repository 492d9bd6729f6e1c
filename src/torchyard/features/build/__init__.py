"""A build of the whole plan, or of the wheel that fits an environment."""
