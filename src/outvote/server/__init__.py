"""The synchronization server."""
