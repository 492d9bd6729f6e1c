"""Reports for people (text, HTML, diagrams) and for programs (JSON documents)."""
