"""The model gateway: `/models/PROVIDER/…` answers as the provider does, with the person's key, which no box gets."""
