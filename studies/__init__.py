"""The paper's experiments and the ones beyond it, one file each; what they say in `summaries`, the pages made of it in `pages`.

Not shipped: run from a checkout, by `python -m studies` or `make reproduce`. Beside them `production_equality`, which plays the
policies of service/policy against their compiled twins, draw for draw.
"""
