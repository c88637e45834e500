"""Doors for agent frameworks: their messages into the log, and the log as their messages."""
