"""Those who ask a master over its web API: commands that follow, list and explain."""
