"""Turns an `Explanation` into something to look at: pure functions, one module for each kind of output.

An explanation, or several under their labels, goes in. Out comes plain text (`text`), a rich renderable for terminals
(`terminal`), an interactive web page (`html`, drawn by the scripts in picture/), a notebook cell (`notebook`) or a
matplotlib figure (`plot`). Import the module that you need: this package imports none of them, so that plain text needs
neither rich nor matplotlib.
"""
