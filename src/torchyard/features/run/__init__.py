"""One job: run here, or beside this command, and ended."""
