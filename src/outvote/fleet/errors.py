"""What goes wrong though the command was right."""

from __future__ import annotations

from outvote.core.errors import OutvoteError


class FleetError(OutvoteError):
    """It was asked for rightly, and could not be done."""
