"""The parent's side of a link: an executor whose runs a worker executes."""
