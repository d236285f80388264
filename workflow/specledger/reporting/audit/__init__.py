"""Other decoders, where an audit was run."""
