"""The toolchain of a cell, for a shell outside of jobs."""
