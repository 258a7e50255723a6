"""A whole fleet on one machine, told as a story."""
