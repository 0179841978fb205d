"""Files of a build besides hardware: manifest, certificate, report."""
