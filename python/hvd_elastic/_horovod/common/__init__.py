"""What is the same for all frameworks."""
