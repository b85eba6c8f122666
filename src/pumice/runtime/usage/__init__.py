"""How busy nodes are, asked of a program that measures it: one port (``sources.UsageSource``), an adapter a program."""
