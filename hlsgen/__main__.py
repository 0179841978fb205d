"""`python -m hlsgen`."""

from hlsgen.cli import main

main()
