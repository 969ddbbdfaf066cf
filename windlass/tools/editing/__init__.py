"""How `edit` and `multiedit` find the text to replace and what they put there: plain functions on a file's content."""
