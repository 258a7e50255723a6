"""One site: serves decisions, learns from rewards, and stores its state on disk."""
