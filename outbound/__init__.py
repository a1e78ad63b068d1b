"""HTTP requests to external servers, protected against server-side request forgery."""
