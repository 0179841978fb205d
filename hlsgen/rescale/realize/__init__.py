"""One file for each realization of a step function, with its proof."""
