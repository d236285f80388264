"""Tables as they are declared: a module each, whose columns all else follows from."""
