"""A package, so that `tests` is this folder wherever the root of the checkout comes first on the path, as it does for
`pumice conformance`, and never a folder of that name in some library."""
