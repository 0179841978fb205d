"""Exploration: many networks of one model, what each costs and how fast it is, and which of them no other one beats."""
