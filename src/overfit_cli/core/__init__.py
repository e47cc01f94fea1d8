"""Studies, parameters, claims and figures as they are declared; text, files, training."""
