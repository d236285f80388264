"""What every layer stands on: errors, settings, records, fingerprints, progress, devices."""
