"""What models are asked, one module a way."""
