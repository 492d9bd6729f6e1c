"""Why something was rebuilt."""
