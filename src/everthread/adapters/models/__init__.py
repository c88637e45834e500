"""Language models and embedders behind our ports, and the files they need."""
