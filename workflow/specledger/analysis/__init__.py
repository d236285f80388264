"""From observations to tables: intervals, the ledger, the claims."""
