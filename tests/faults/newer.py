"""What the nursery loads to have a command of the next version of the rules: see `next_rules`."""

from __future__ import annotations

from faults.next_rules import learn

learn()
