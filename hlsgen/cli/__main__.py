"""`python -m hlsgen.cli`."""

from hlsgen.cli import main

main()
