"""Interpreters: run a Model step by step in its own types, and a Graph on integers."""
