"""What touches sockets and disks."""
