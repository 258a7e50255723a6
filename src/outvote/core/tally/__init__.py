"""Tally: players that report counts, and the server that bets on them."""
