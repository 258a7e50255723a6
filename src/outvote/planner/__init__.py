"""What a task will cost before it is started: events, days, bits, what is guaranteed, and what an eavesdropper sees."""
