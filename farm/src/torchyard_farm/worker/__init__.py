"""The worker process of a machine: its connections to a master, and what it reports and refuses."""
