"""What is built on a host: compilers, and the hdf5 for operator dumps."""
