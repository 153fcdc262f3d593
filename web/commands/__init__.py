"""The commands of `askonce`, a file a subject. Each asks a Door and prints; web/cli.py finds the door."""
