"""A tree to develop a project in, from a finished core on."""
