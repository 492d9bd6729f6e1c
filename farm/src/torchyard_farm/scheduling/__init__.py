"""What decides: which job is next, where, how often, and what its end means; without Buildbot."""
