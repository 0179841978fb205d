"""Code for the processor beside the core, in Python and C: bus bytes, and the pre- and postprocessing of the model."""
