"""The files of a build that every target has: manifest, report, folding, sample vectors."""
