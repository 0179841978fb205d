"""Stimuli, and codes as words of a stream."""
