"""One attempt of a job: its build, its step, and when it may be retried."""
