"""The page in a real browser: headless Chromium against a real server; only what the model says is decided here."""
