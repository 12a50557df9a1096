"""Real tools that take our exports: set up apart from our own environment, driven by the slow tests."""
