"""Claims of devices: what is offered, who holds what, and where a claim can be given what it asks for."""
