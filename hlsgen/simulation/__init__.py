"""Stimuli, beats, simulators, and the verdict."""
