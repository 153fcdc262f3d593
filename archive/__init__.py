"""Askonce's nouns and rules: what is asked, what came of it, what may be served. Pure: nothing here does anything."""
