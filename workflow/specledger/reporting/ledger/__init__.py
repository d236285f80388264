"""The ledger: methods, tokens per round, speed-up."""
