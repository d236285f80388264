"""The systems whose decoders are audited: one module each.

The upper half of a module says what the system is called, what it needs and which modes it has; the lower half,
`System`, runs in its environment, in a process of its own that speaks the protocol of `worker`.
"""
