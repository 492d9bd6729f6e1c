"""What this machine compiles with."""
