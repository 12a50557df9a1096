"""Maps of the pool: two dimensions from features by a method, their artifact, what colours them."""
