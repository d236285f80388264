"""A pair of real models: a target of transformers and its drafters, held to the same evidence as the study's."""
