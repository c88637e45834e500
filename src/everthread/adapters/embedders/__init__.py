"""Embedders: what turns texts into vectors. `choosing` builds the one that is asked for; each other module is one."""
