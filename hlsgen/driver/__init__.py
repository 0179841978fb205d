"""The way from a file to a build: options, schedule, build directory."""
