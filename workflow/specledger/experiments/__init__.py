"""What is measured: checks, acceptance simulation, the sweep over gamma."""
