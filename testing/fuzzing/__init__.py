"""Code that reads bytes, held against another way to read them, with inputs that a fuzzer looks for by what they reach."""
