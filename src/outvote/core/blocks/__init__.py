"""Randomised blocks: arms are drawn at random at each site, and compared only within a block. docs/blocks.md."""
