"""The points that an index consists of: their layout, and documents as points and back."""
