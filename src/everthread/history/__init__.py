"""The full history: the way in (ingest), what may be written (intents), reading, revising, searching, proving."""
