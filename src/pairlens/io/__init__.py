"""Files: results, tables, journals."""
