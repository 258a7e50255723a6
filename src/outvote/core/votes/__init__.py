"""The paper's protocols: players that eliminate medians locally and vote, and the server that counts votes."""
