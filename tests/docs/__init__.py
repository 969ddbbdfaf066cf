"""Everything in README.md and docs/ that can be executed is executed. docs/README.md has the rules."""
