"""One adapter an audited system; each is any object with a name, a version and sample()."""
