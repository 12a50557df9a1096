"""The baselines' own work: scores from features, deep clustering, self-supervised encoders, score extrapolation.

Each file holds one idea of one paper. ``providers`` puts them together as kinds of evidence; it imports lightly, and
torch only inside the functions that need it.
"""
