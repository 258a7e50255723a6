"""Who takes part in a fleet: keys, certificates, credentials and kits."""
