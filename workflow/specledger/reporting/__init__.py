"""From tables to figures, the page and the paper."""
