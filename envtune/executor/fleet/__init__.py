"""What `envtune fleet fix` asks of the executor on a host."""
