"""The paper's experiments and the ones beyond it, one file each."""
