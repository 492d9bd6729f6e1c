"""What workers report: whether they are alive, their resources, and the jobs they run."""
