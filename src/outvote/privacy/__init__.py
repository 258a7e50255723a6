"""What messages give away: exact posteriors (docs/adversary.md), the closed list of all fields, and the audit."""
