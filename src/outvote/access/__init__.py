"""Authentication and TLS: kits, tokens, certificates and credentials."""
