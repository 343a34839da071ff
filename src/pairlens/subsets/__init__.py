"""Which subsets of units to try, and contributions from the values of those tried."""
