"""OpenFeature's remote evaluation protocol: experiments as flags, arms as variants, errors in its own shape."""
