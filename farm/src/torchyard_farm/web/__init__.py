"""What people see of plans: pure functions from what is known to HTML and words."""
