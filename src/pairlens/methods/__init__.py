"""Ways to take a text's embedding apart, one file each: every one turns texts into `Contributions`."""
