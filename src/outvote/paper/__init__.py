"""The paper's Experiments section, run anew: figures, a verdict on each claim, and a report."""
