"""The twelve studies of both papers, one file each."""
