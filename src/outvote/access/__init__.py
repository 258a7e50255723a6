"""Who may do what: kits, tokens, certificates and credentials."""
