"""The reports of workers: heartbeats, resources, and running jobs."""
