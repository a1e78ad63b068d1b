"""Reads documents where they are stored: file stores, and services with their own API."""
