-- The record. Insert-only tables hold numbers, moments (microseconds since 1970, UTC) and enums; every string that comes
-- from outside is a row of `text`. Each insert-only row carries a link of its table's chain: 16 bytes of SHA-256 over the
-- link before it and its own columns, texts by their seals (archive/actor/store/rows.py).

-- a distinct text; the one change allowed is to empty it
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    length      INTEGER NOT NULL,
    bytes       BLOB,
    seal        BLOB NOT NULL,
    salt        BLOB,
    emptied_at  INTEGER,
    chain BLOB NOT NULL
) STRICT;

-- a place
CREATE TABLE destination (
    id INTEGER PRIMARY KEY,
    name        INTEGER NOT NULL REFERENCES text,
    method      INTEGER NOT NULL REFERENCES text,
    url         INTEGER NOT NULL REFERENCES text,
    chain BLOB NOT NULL
) STRICT;

-- a distinct request; state and model stand at their offsets in the instructions, or the body is whole
CREATE TABLE request (
    id INTEGER PRIMARY KEY,
    partition    INTEGER REFERENCES text,
    destination  INTEGER NOT NULL REFERENCES destination,
    content_type INTEGER NOT NULL REFERENCES text,
    headers      INTEGER REFERENCES text,
    instructions INTEGER NOT NULL REFERENCES text,
    state        INTEGER REFERENCES text,
    state_at     INTEGER,
    model        INTEGER REFERENCES text,
    model_at     INTEGER,
    whole        INTEGER NOT NULL CHECK (whole IN (0, 1)),
    chain BLOB NOT NULL
) STRICT;

-- one sending; origin 1 sent, 2 imported
CREATE TABLE dispatch (
    id INTEGER PRIMARY KEY,
    request       INTEGER NOT NULL REFERENCES request,
    asked_model   INTEGER REFERENCES text,
    origin        INTEGER NOT NULL CHECK (origin IN (1, 2)),
    imported_from INTEGER REFERENCES text,
    at            INTEGER NOT NULL,
    chain BLOB NOT NULL
) STRICT;

-- what came of a sending; state 1 answered, 2 failed, 3 unknown; n = 2 only as answered after unknown. cuts: of a stream,
-- the bytes in each chunk it came in, as JSON; cut_short: the model stopped at a limit before it had finished
CREATE TABLE outcome (
    id INTEGER PRIMARY KEY,
    dispatch       INTEGER NOT NULL REFERENCES dispatch,
    n              INTEGER NOT NULL CHECK (n IN (1, 2)),
    state          INTEGER NOT NULL CHECK (state IN (1, 2, 3)),
    why            INTEGER NOT NULL,
    paid           INTEGER NOT NULL CHECK (paid IN (0, 1)),
    at             INTEGER NOT NULL,
    ms             INTEGER NOT NULL,
    status         INTEGER,
    reply          INTEGER REFERENCES text,
    content_type   INTEGER REFERENCES text,
    provider_id    INTEGER REFERENCES text,
    answered_model INTEGER REFERENCES text,
    input_tokens   INTEGER,
    output_tokens  INTEGER,
    cost           INTEGER,
    cuts           INTEGER REFERENCES text,
    cut_short      INTEGER NOT NULL CHECK (cut_short IN (0, 1)),
    chain BLOB NOT NULL
) STRICT;

-- version n of a request
CREATE TABLE answer (
    id INTEGER PRIMARY KEY,
    request  INTEGER NOT NULL REFERENCES request,
    n        INTEGER NOT NULL,
    outcome  INTEGER NOT NULL REFERENCES outcome,
    chain BLOB NOT NULL
) STRICT;

-- one asking somebody named, with the answer it was served from or the sending it waited for; its number is
-- Archive-Judgment
CREATE TABLE asking (
    id INTEGER PRIMARY KEY,
    request        INTEGER NOT NULL REFERENCES request,
    answer         INTEGER REFERENCES answer,
    dispatch       INTEGER REFERENCES dispatch,
    pass           INTEGER REFERENCES text,
    about          INTEGER REFERENCES text,
    reading        INTEGER REFERENCES text,
    inputs         INTEGER NOT NULL,
    inputs_missing INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    chain BLOB NOT NULL,
    CHECK ((answer IS NULL) <> (dispatch IS NULL))
) STRICT;

-- one named input of an asking; found_at is its offset in the body, NULL when it is not there
CREATE TABLE asking_input (
    id INTEGER PRIMARY KEY,
    asking    INTEGER NOT NULL REFERENCES asking,
    n         INTEGER NOT NULL,
    name      INTEGER REFERENCES text,
    words     INTEGER NOT NULL REFERENCES text,
    found_at  INTEGER,
    chain BLOB NOT NULL
) STRICT;

-- the owner's word on an answer; the newest counts
CREATE TABLE withdrawal (
    id INTEGER PRIMARY KEY,
    answer    INTEGER NOT NULL REFERENCES answer,
    withdrawn INTEGER NOT NULL CHECK (withdrawn IN (0, 1)),
    by        INTEGER REFERENCES text,
    why       INTEGER REFERENCES text,
    at        INTEGER NOT NULL,
    chain BLOB NOT NULL
) STRICT;

-- the owner's word on a question's place in public; the newest counts
CREATE TABLE moderation (
    id INTEGER PRIMARY KEY,
    words   INTEGER NOT NULL REFERENCES text,
    listed  INTEGER NOT NULL CHECK (listed IN (0, 1)),
    by      INTEGER REFERENCES text,
    why     INTEGER REFERENCES text,
    at      INTEGER NOT NULL,
    chain BLOB NOT NULL
) STRICT;

CREATE INDEX destination_url ON destination (url);
CREATE INDEX dispatch_request ON dispatch (request);
CREATE UNIQUE INDEX outcome_key ON outcome (dispatch, n);
CREATE UNIQUE INDEX answer_key ON answer (request, n);
CREATE INDEX asking_answer ON asking (answer) WHERE answer IS NOT NULL;
CREATE INDEX asking_dispatch ON asking (dispatch) WHERE dispatch IS NOT NULL;
CREATE INDEX asking_about ON asking (about) WHERE about IS NOT NULL;
CREATE UNIQUE INDEX asking_input_key ON asking_input (asking, n);
CREATE INDEX withdrawal_answer ON withdrawal (answer);
CREATE INDEX moderation_words ON moderation (words);

-- Guards. REPLACE deletes without firing a delete trigger unless recursive_triggers is on, so a row that would stand in
-- another's place is refused before it is written.

CREATE TRIGGER text_once BEFORE INSERT ON text WHEN EXISTS (SELECT 1 FROM text WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'text is write-once'); END;
CREATE TRIGGER text_delete BEFORE DELETE ON text
BEGIN SELECT RAISE(ABORT, 'text is write-once'); END;

CREATE TRIGGER destination_once BEFORE INSERT ON destination WHEN EXISTS (SELECT 1 FROM destination WHERE id = NEW.id OR name = NEW.name AND method = NEW.method AND url = NEW.url)
BEGIN SELECT RAISE(ABORT, 'destination is write-once'); END;
CREATE TRIGGER destination_update BEFORE UPDATE ON destination
BEGIN SELECT RAISE(ABORT, 'destination is write-once'); END;
CREATE TRIGGER destination_delete BEFORE DELETE ON destination
BEGIN SELECT RAISE(ABORT, 'destination is write-once'); END;

CREATE TRIGGER request_once BEFORE INSERT ON request WHEN EXISTS (SELECT 1 FROM request WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'request is write-once'); END;
CREATE TRIGGER request_update BEFORE UPDATE ON request
BEGIN SELECT RAISE(ABORT, 'request is write-once'); END;
CREATE TRIGGER request_delete BEFORE DELETE ON request
BEGIN SELECT RAISE(ABORT, 'request is write-once'); END;

CREATE TRIGGER dispatch_once BEFORE INSERT ON dispatch WHEN EXISTS (SELECT 1 FROM dispatch WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'dispatch is write-once'); END;
CREATE TRIGGER dispatch_update BEFORE UPDATE ON dispatch
BEGIN SELECT RAISE(ABORT, 'dispatch is write-once'); END;
CREATE TRIGGER dispatch_delete BEFORE DELETE ON dispatch
BEGIN SELECT RAISE(ABORT, 'dispatch is write-once'); END;

CREATE TRIGGER outcome_once BEFORE INSERT ON outcome WHEN EXISTS (SELECT 1 FROM outcome WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'outcome is write-once'); END;
CREATE TRIGGER outcome_update BEFORE UPDATE ON outcome
BEGIN SELECT RAISE(ABORT, 'outcome is write-once'); END;
CREATE TRIGGER outcome_delete BEFORE DELETE ON outcome
BEGIN SELECT RAISE(ABORT, 'outcome is write-once'); END;

CREATE TRIGGER answer_once BEFORE INSERT ON answer WHEN EXISTS (SELECT 1 FROM answer WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'answer is write-once'); END;
CREATE TRIGGER answer_update BEFORE UPDATE ON answer
BEGIN SELECT RAISE(ABORT, 'answer is write-once'); END;
CREATE TRIGGER answer_delete BEFORE DELETE ON answer
BEGIN SELECT RAISE(ABORT, 'answer is write-once'); END;

CREATE TRIGGER asking_once BEFORE INSERT ON asking WHEN EXISTS (SELECT 1 FROM asking WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'asking is write-once'); END;
CREATE TRIGGER asking_update BEFORE UPDATE ON asking
BEGIN SELECT RAISE(ABORT, 'asking is write-once'); END;
CREATE TRIGGER asking_delete BEFORE DELETE ON asking
BEGIN SELECT RAISE(ABORT, 'asking is write-once'); END;

CREATE TRIGGER asking_input_once BEFORE INSERT ON asking_input WHEN EXISTS (SELECT 1 FROM asking_input WHERE id = NEW.id OR asking = NEW.asking AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'asking_input is write-once'); END;
CREATE TRIGGER asking_input_update BEFORE UPDATE ON asking_input
BEGIN SELECT RAISE(ABORT, 'asking_input is write-once'); END;
CREATE TRIGGER asking_input_delete BEFORE DELETE ON asking_input
BEGIN SELECT RAISE(ABORT, 'asking_input is write-once'); END;

CREATE TRIGGER withdrawal_once BEFORE INSERT ON withdrawal WHEN EXISTS (SELECT 1 FROM withdrawal WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'withdrawal is write-once'); END;
CREATE TRIGGER withdrawal_update BEFORE UPDATE ON withdrawal
BEGIN SELECT RAISE(ABORT, 'withdrawal is write-once'); END;
CREATE TRIGGER withdrawal_delete BEFORE DELETE ON withdrawal
BEGIN SELECT RAISE(ABORT, 'withdrawal is write-once'); END;

CREATE TRIGGER moderation_once BEFORE INSERT ON moderation WHEN EXISTS (SELECT 1 FROM moderation WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'moderation is write-once'); END;
CREATE TRIGGER moderation_update BEFORE UPDATE ON moderation
BEGIN SELECT RAISE(ABORT, 'moderation is write-once'); END;
CREATE TRIGGER moderation_delete BEFORE DELETE ON moderation
BEGIN SELECT RAISE(ABORT, 'moderation is write-once'); END;

-- A text may be emptied, once: bytes and salt go, the seal and all else stay.
CREATE TRIGGER text_update BEFORE UPDATE ON text WHEN NOT (
    NEW.id = OLD.id AND NEW.length = OLD.length AND NEW.seal = OLD.seal AND NEW.chain = OLD.chain
    AND OLD.bytes IS NOT NULL AND OLD.emptied_at IS NULL
    AND NEW.bytes IS NULL AND NEW.salt IS NULL AND NEW.emptied_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'text is write-once'); END;

-- Versions are numbered from 1 without a gap.
CREATE TRIGGER answer_number BEFORE INSERT ON answer
WHEN NEW.n <> 1 + coalesce((SELECT max(n) FROM answer WHERE request = NEW.request), 0)
BEGIN SELECT RAISE(ABORT, 'answers are numbered from 1 without a gap'); END;

-- A second outcome is only ever the late answer of an unknown one.
CREATE TRIGGER outcome_number BEFORE INSERT ON outcome
WHEN EXISTS (SELECT 1 FROM outcome WHERE dispatch = NEW.dispatch AND n >= NEW.n)
  OR NEW.n = 2 AND NOT (NEW.state = 1 AND EXISTS (SELECT 1 FROM outcome WHERE dispatch = NEW.dispatch AND state = 3))
BEGIN SELECT RAISE(ABORT, 'an outcome is written once, and followed only by a late answer'); END;

-- Look-up tables: 64-bit pieces of plain hashes; candidates that are compared whole. They can be rebuilt. A call_id is
-- the first 48 bits of a request's, so that the requests it names stand side by side.
CREATE TABLE text_key (hash INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (hash, text)) STRICT, WITHOUT ROWID;
CREATE TABLE request_key (hash INTEGER NOT NULL, request INTEGER NOT NULL, PRIMARY KEY (hash, request)) STRICT, WITHOUT ROWID;

-- Changeable. A question is what somebody typed (form: options or levels typed apart, as JSON), and what it came to
-- when it was last asked: calls and conclusion are JSON, kept as texts because they hold people's words. alone: the
-- decision model answered it, with no language model in front.
CREATE TABLE question (
    id         INTEGER PRIMARY KEY,
    words      INTEGER NOT NULL REFERENCES text,
    form       INTEGER NOT NULL REFERENCES text,
    times      INTEGER NOT NULL,
    first_at   INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    recipe     INTEGER NOT NULL,
    calls      INTEGER NOT NULL REFERENCES text,
    conclusion INTEGER NOT NULL REFERENCES text,
    listed     INTEGER NOT NULL CHECK (listed IN (0, 1)),
    alone      INTEGER NOT NULL CHECK (alone IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX question_key ON question (words, form);
CREATE INDEX question_last ON question (last_at, id) WHERE listed = 1;
CREATE INDEX question_times ON question (times, id) WHERE listed = 1;

CREATE TABLE count (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE cooldown (place INTEGER PRIMARY KEY, until INTEGER NOT NULL, status INTEGER NOT NULL) STRICT;
CREATE TABLE budget (day INTEGER NOT NULL, upstream TEXT NOT NULL, sent INTEGER NOT NULL,
    PRIMARY KEY (day, upstream)) STRICT, WITHOUT ROWID;
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE session (hash BLOB PRIMARY KEY, made_at INTEGER NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- An access token: SHA-256 of its secret, and what whoever shows that may do; limits of 0 are none. Its number names a
-- private archive, so no row is ever deleted (store/guards.py) and no number used twice.
CREATE TABLE token (
    id              INTEGER PRIMARY KEY,
    hash            BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    name            INTEGER NOT NULL REFERENCES text,
    private         INTEGER NOT NULL CHECK (private IN (0, 1)),
    fresh           INTEGER NOT NULL CHECK (fresh IN (0, 1)),
    day_calls_max   INTEGER NOT NULL CHECK (day_calls_max >= 0),
    minute_asks_max INTEGER NOT NULL CHECK (minute_asks_max >= 0),
    made_at         INTEGER NOT NULL,
    revoked_at      INTEGER
) STRICT;

CREATE TABLE token_budget (day INTEGER NOT NULL, token INTEGER NOT NULL REFERENCES token, sent INTEGER NOT NULL,
    PRIMARY KEY (day, token)) STRICT, WITHOUT ROWID;

-- requests that were asked through a public page; once there is a token, visitors see no others
CREATE TABLE public_request (request INTEGER PRIMARY KEY REFERENCES request) STRICT;
