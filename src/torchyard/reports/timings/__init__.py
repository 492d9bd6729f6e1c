"""Reports about the time of a build."""
