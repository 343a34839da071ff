"""The papers' Table 1: the cost of the adjustment in predictive performance, for every base model and objective.

Base models and labelled pairs go in; each base is trained adjusted and not, and a table of correlations comes out.
"""
