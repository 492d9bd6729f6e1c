"""Whether packages can be installed, and work."""
