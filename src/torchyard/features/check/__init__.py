"""What is wrong with packages."""
