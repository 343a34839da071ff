"""Integrals of a function's derivative along straight paths.

In go `Problems` (a function, the ends of the paths, and groups of inputs) and a rule; out comes one `Integral` per
problem, with one vector per group and the measured gap. Adaptive rules choose their nodes from values of the function.
"""

from pairlens.quadrature.integrate import Integral, first_values, integrate, integrate_in_steps
from pairlens.quadrature.problems import BUDGET, Problems
from pairlens.quadrature.rules import Adaptive, GaussLegendre, NodeTable, Riemann, Rule, check_rule

__all__ = [
    "BUDGET",
    "Adaptive",
    "GaussLegendre",
    "Integral",
    "NodeTable",
    "Problems",
    "Riemann",
    "Rule",
    "check_rule",
    "first_values",
    "integrate",
    "integrate_in_steps",
]
