"""Reads documents where they live: stores of files, and services with an interface of their own."""
