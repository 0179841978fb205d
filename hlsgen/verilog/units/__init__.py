"""One description per kind of unit: its module, latency, expected resources and ready path."""
