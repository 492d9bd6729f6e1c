"""Execute one job: work directory, environment, steps, log, result."""
