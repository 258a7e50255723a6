"""The protocols as state machines: events in, messages out.

Nothing in this package does input or output, reads a clock, logs, or draws from a global generator.
"""
