"""`python -m hlsgen.cli` is the command."""

from hlsgen.cli import main

main()
