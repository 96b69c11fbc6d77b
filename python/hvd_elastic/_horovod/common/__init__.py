"""The parts that are the same for all frameworks."""
