"""Project files around a core, for the tools and flows that take it into a design."""
