"""The twelve studies of both papers, one file each, with a function `study` that makes a `Result` from `Materials`."""
