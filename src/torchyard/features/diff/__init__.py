"""What differs between two packages."""
