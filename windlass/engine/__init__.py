"""Makes decisions happen: one actor per workspace joins core, journal and executors."""
