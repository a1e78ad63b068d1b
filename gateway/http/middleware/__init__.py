"""The layers that every HTTP request passes before the routes: its key, then its body."""
