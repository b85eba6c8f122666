"""Changes of which ways out are made, by what they change."""
