"""Code for the processor beside the hardware, in Python and C: bytes of the bus, and what of the model stays with it."""
