"""Synthesis with open tools: size and clock of builds, for the benchmarks and for the fit of the estimates."""
