"""Maps of the pool: features from a source, two dimensions from a method, an artifact that keeps them.

``maps`` and the settings import lightly; torch, umap and scikit-learn are imported by the work that needs them.
"""
