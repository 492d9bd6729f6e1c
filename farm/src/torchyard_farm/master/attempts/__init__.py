"""An attempt of a job: its build, its step, and its retries."""
