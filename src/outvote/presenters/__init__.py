"""What people are told: the fields of a task, and of each protocol what its messages and its answers mean. Pure."""
