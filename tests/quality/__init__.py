"""Questions with known answers, kept apart to judge the built-in model. Never train on them, never edit them."""
