"""The page and its server: `pairlens serve`."""
