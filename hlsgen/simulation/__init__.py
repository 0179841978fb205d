"""Simulates a build, verifies it against its model, and finds the first layer that differs."""
