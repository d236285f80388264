"""The command line, one module a stage."""
