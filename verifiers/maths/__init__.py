"""Math: the parts of :class:`~assay.verifiers.Math`, from the reply to the verdict."""
