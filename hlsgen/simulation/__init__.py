"""Runs a build in simulators, verifies it against its model, and finds the first layer that differs."""
