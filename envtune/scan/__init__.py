"""Read launch files (shell scripts, Dockerfiles, Slurm and Kubernetes jobs) and check what they give the job."""
