"""What several tests of the actor begin with."""

import pytest


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite waits a quarter of a second for a lock; a millisecond shows the same."""
    monkeypatch.setattr("archive.actor.store.file.BUSY_MS_MAX", 1)
