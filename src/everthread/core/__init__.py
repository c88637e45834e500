"""The nouns, the errors and the ports: what every other room speaks of. Standard library only."""
