"""What a machine lacks for a build."""
