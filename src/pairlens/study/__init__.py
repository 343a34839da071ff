"""Analyses of whole data sets, one package each: `pairlens study NAME` runs them and writes to OUT/NAME/."""
