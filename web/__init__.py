"""The web: renders and translates. It decides nothing about the record."""
