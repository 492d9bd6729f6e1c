"""What runs on a machine that works for a farm: agents, and what they tell and refuse."""
