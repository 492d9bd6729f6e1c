"""Why something was built again."""
