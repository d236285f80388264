"""How text is generated: engines, drafters, and the two decoding loops."""
