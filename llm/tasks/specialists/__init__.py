"""What the specialists are asked: one task each, with typed inputs and a typed output."""
