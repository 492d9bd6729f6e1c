"""The closing table of a build."""
