"""GPU code inside of libraries."""
