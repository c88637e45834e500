"""What a model is shown: units, window, tokens and budget (pure functions, above `core`)."""
