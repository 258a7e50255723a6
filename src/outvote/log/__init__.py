"""What everybody agrees on: the records of the one log, and the state that they add up to. Pure."""
