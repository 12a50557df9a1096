"""Hostile inputs by the thousand: small valid examples, damaged at random from a seed.

``python -m tests.fuzz SEED [KIND [NUMBER]]`` repeats what a test found; 2,000 inputs without a kind.
"""
