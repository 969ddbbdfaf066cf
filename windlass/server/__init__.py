"""HTTP: who may come in, what they may ask, and the stream they read. Nothing is decided here."""
