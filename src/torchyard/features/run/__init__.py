"""A single job: run in this command or detached, and cancelled."""
