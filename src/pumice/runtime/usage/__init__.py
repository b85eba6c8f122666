"""Measured load of nodes, asked of programs that measure it: one port (``sources.UsageSource``), an adapter per
program."""
