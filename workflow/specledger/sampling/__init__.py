"""From logits to tokens: distributions, draws and the acceptance rule."""
