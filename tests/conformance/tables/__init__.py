"""Checks for the tables of the reference's own function tests: `table` reads and runs them, the others hold checks."""
