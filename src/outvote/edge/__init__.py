"""One site: it serves decisions, learns from rewards, and keeps what must not be forgotten."""
