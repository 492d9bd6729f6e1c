"""What would be built."""
