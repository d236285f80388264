"""One module a kind of drafter: the network, what it learns, how it proposes, and what is said of it."""
