"""Background work: the worker that takes jobs, and what each kind of job does."""
