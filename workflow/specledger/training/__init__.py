"""How the models are trained."""
