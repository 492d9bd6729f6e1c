"""The worker process of a machine: its connections to a master, and its reports and refusals."""
