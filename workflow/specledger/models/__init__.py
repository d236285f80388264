"""What is learned or counted: the LLaMA-style models, the MTP module, the n-gram."""
