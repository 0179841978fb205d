"""Exploration: many networks of one model, their costs and rates, and the Pareto front among them."""
