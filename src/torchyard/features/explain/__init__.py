"""Why something is in the plan, or is not, and what a rule is for."""
