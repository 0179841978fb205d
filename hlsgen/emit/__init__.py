"""Design -> files."""
