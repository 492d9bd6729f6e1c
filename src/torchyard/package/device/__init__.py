"""GPU code in libraries."""
