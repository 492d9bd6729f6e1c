"""Reports about figures from run to run."""
