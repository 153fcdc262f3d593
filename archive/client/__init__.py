"""For Python programs that ask through a running Askonce."""
