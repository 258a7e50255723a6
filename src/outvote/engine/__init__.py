"""NATS, which only this package uses: the log on JetStream, its connection, and the embedded server process."""
