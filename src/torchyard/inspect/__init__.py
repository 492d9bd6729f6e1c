"""Look at plans and configurations, change nothing: tables, documents, diagrams."""
