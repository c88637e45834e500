"""The nodes of a turn, one to a file: each takes the state and the scene, and returns only what it changed."""
