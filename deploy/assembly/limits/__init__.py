"""Limits of questions and tenants: the budgets that the processes share."""
