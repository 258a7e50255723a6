"""The pages that `outvote server` shows to people."""
