"""The specialists without a model: the rule of each task, over the core of this package."""
