"""Fine-tuning of an adapter on training examples."""
