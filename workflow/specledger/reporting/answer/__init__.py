"""The answer: was the distribution kept, the best speed-up, theory beside the clock."""
