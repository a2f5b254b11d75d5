"""``assay plan``: what a training run needs, before a GPU is rented."""
