"""What calls with effects need: a receipt, so that one happens once, and approvals of people."""
