"""What messages give away: the closed list of all fields, and the audit."""
