"""Shipped with the product: what tests of Windlass, and of things built on it, need to be real and repeatable."""
