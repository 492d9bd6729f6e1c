"""What is in a package: its components, and the document that lists them (SBOM)."""
