"""What pages show of one cycle, as plain columns that hold none of its tables."""
