"""Internal commands for steps of jobs."""
