"""Plans calls of tools by rules, and judges what they found."""
