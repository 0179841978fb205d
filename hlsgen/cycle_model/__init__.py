"""When every beat of the hardware moves: latency, interval, sizes of FIFOs, deadlock."""
