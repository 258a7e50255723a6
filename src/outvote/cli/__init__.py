"""The command line: one file per command, thin. A command loads what it needs when it runs."""
