"""The commands, a module and a function each."""
