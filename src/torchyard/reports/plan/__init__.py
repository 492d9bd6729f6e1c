"""Reports about plans and configurations: tables, JSON, diagrams."""
