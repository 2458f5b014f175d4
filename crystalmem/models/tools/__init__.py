"""Scripts for the build environment, where torch and transformers are: run by path, never imported."""
