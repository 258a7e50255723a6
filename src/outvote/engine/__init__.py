"""NATS, and nothing else knows it: the log on JetStream, its connection, and the process of an own engine."""
