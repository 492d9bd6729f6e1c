"""Why something is or is not in the plan, and the purpose of rules."""
