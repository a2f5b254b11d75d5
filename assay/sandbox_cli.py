"""``assay sandbox``: build the image, check the isolation, run one file."""
