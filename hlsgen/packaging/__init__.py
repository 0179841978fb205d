"""Writes project files around a core for synthesis tools, simulators and other flows."""
