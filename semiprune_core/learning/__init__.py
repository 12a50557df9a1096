"""Learning on torch: nets, augmentation, loops, checkpoints. Settings, presets and algorithms import without torch."""
