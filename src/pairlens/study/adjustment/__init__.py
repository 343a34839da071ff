"""The papers' Table 1: what the adjustment costs in predictive performance, base by base, with either objective."""
