"""The facts that workers need from the user: typed fields, found or asked for."""
