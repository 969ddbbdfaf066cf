"""The child's side: serves any executor over links, and ends with its parent."""
