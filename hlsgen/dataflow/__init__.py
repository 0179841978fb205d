"""Graph -> network of neutral units and streams: folding, resources."""
