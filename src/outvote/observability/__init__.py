"""What operators see of a process: structured logs and metrics."""
