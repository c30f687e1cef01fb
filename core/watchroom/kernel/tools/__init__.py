"""The declaration of tools: parameters, results, annotations, and definitions for models."""
