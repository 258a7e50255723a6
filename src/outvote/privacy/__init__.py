"""What messages give away: an adversary who knows everything but one thing (docs/adversary.md), and the audit."""
