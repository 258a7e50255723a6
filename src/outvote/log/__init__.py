"""The records of the shared log, and the state machine that replays them. Pure: no I/O, no clock."""
