"""All facts of a plan and its results."""
