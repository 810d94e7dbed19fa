-- A record as schema 1 made it and schemas 2 to 5 upgraded it. Never changed: later versions must open it.
PRAGMA application_id = 1400136312;
PRAGMA user_version = 5;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE events (
	session TEXT NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	at TEXT GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%S', time / 1000000000, 'unixepoch') || printf('.%09dZ', time % 1000000000)) VIRTUAL,
	kind TEXT NOT NULL,
	event TEXT NOT NULL,
	key INTEGER NOT NULL,
	doc TEXT NOT NULL,
	prev BLOB NOT NULL,
	hash BLOB NOT NULL,
	PRIMARY KEY (session, seq)
) STRICT;
INSERT INTO events VALUES('aaaaaaaa',1,1795251621598312601,'session','session.created',0,'{"id":"aaaaaaaa","name":"n","number":1,"state":"running"}',X'0000000000000000000000000000000000000000000000000000000000000000',X'ed31fd9c2d74763d6a37835bc8cd1ebdb127bb1bf80540bad4e887494083c2bd');
INSERT INTO events VALUES('aaaaaaaa',2,1795251621598645511,'action','action.held',1,'{"n":1,"kind":"command","state":"held","title":"go test ./... # 1"}',X'ed31fd9c2d74763d6a37835bc8cd1ebdb127bb1bf80540bad4e887494083c2bd',X'ef88a780f7b00aaf9c18c1a49c75486a01779deceaa35610c0f13949b103cd50');
INSERT INTO events VALUES('aaaaaaaa',3,1795251621598742978,'action','action.ended',1,'{"n":1,"kind":"command","state":"ended","title":"go test ./... # 1"}',X'ef88a780f7b00aaf9c18c1a49c75486a01779deceaa35610c0f13949b103cd50',X'cb985ad0f58633a1944015e40ba3afd198864fc52152225928cb9bc45cee6df7');
CREATE TABLE bodies (
	hash BLOB NOT NULL PRIMARY KEY,
	data BLOB NOT NULL
) STRICT;
INSERT INTO bodies VALUES(X'0be9c598ae63835518e7fb422dc3027f452d75f3dbdb94c90d843298b1180ad9',X'626f6479');
CREATE TABLE IF NOT EXISTS "sessions" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"number" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.number')) VIRTUAL,
	"name" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.name')) VIRTUAL,
	"agent" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.agent')) VIRTUAL,
	"command" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.command')) VIRTUAL,
	"workspace" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.workspace')) VIRTUAL,
	"folder" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.folder')) VIRTUAL,
	"mode" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.mode')) VIRTUAL,
	"state" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.state')) VIRTUAL,
	"started_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.started_at')) VIRTUAL,
	"ended_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.ended_at')) VIRTUAL,
	"exit_code" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.exit.code')) VIRTUAL,
	"exit_signal" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.exit.signal')) VIRTUAL,
	"cols" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.cols')) VIRTUAL,
	"rows" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.rows')) VIRTUAL,
	"limits_source" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.limits.source')) VIRTUAL,
	"limits_memory" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.limits.memory')) VIRTUAL,
	"limits_cpus" REAL GENERATED ALWAYS AS (json_extract(doc, '$.limits.cpus')) VIRTUAL,
	"limits_pids" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.limits.pids')) VIRTUAL,
	"limits_wall_time" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.limits.wall_time')) VIRTUAL,
	"warnings" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.warnings')) VIRTUAL,
	"hidden" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.hidden')) VIRTUAL,
	"hosts" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.hosts')) VIRTUAL,
	"actions" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.actions')) VIRTUAL,
	"held" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.held')) VIRTUAL,
	"unreviewed" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.unreviewed')) VIRTUAL,
	"attempts" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.attempts')) VIRTUAL,
	"last_action" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.last_action')) VIRTUAL,
	"screen" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.screen')) VIRTUAL,
	PRIMARY KEY (session, key)
);
INSERT INTO sessions VALUES('aaaaaaaa',0,1,'{"id":"aaaaaaaa","name":"n","number":1,"state":"running"}');
CREATE TABLE IF NOT EXISTS "actions" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"action_kind" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.kind')) VIRTUAL,
	"state" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.state')) VIRTUAL,
	"review" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.review')) VIRTUAL,
	"title" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.title')) VIRTUAL,
	"housekeeping" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.housekeeping')) VIRTUAL,
	"verdict" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.verdict')) VIRTUAL,
	"rule" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.rule')) VIRTUAL,
	"by" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.by')) VIRTUAL,
	"reason" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.reason')) VIRTUAL,
	"started_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.started_at')) VIRTUAL,
	"released_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.released_at')) VIRTUAL,
	"ended_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.ended_at')) VIRTUAL,
	"exit_code" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.exit.code')) VIRTUAL,
	"exit_signal" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.exit.signal')) VIRTUAL,
	"execs" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.execs')) VIRTUAL,
	"left_running" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.left_running')) VIRTUAL,
	"files" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.files')) VIRTUAL,
	"added" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.added')) VIRTUAL,
	"removed" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.removed')) VIRTUAL,
	"shared" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.shared')) VIRTUAL,
	"before" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.before')) VIRTUAL,
	"after" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.after')) VIRTUAL,
	PRIMARY KEY (session, key)
);
INSERT INTO actions VALUES('aaaaaaaa',1,3,'{"n":1,"kind":"command","state":"ended","title":"go test ./... # 1"}');
CREATE TABLE IF NOT EXISTS "questions" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"action" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.action')) VIRTUAL,
	"subject" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.subject')) VIRTUAL,
	"title" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.title')) VIRTUAL,
	"hash" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.hash')) VIRTUAL,
	"rule" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.rule')) VIRTUAL,
	"held_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.held_at')) VIRTUAL,
	"closed" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.closed')) VIRTUAL,
	"line" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.command.line')) VIRTUAL,
	"argv" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.command.argv')) VIRTUAL,
	"cwd" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.command.cwd')) VIRTUAL,
	"program" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.command.program')) VIRTUAL,
	"written" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.command.written')) VIRTUAL,
	"pid" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.command.pid')) VIRTUAL,
	"changes" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.changes')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "decisions" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"question" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.question')) VIRTUAL,
	"action" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.action')) VIRTUAL,
	"hash" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.hash')) VIRTUAL,
	"answer" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.answer')) VIRTUAL,
	"reason" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.reason')) VIRTUAL,
	"by" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.by')) VIRTUAL,
	"at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.at')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "attempts" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"action" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.action')) VIRTUAL,
	"pid" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.pid')) VIRTUAL,
	"at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.at')) VIRTUAL,
	"program" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.program')) VIRTUAL,
	"protocol" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.protocol')) VIRTUAL,
	"name" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.name')) VIRTUAL,
	"address" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.address')) VIRTUAL,
	"port" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.port')) VIRTUAL,
	"resolved" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.resolved')) VIRTUAL,
	"verdict" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.verdict')) VIRTUAL,
	"rule" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.rule')) VIRTUAL,
	"sent" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.sent')) VIRTUAL,
	"received" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.received')) VIRTUAL,
	"duration" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.duration')) VIRTUAL,
	"open" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.open')) VIRTUAL,
	"failure" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.failure')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "rollbacks" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"to_before" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.to_before')) VIRTUAL,
	"checkpoint" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.checkpoint')) VIRTUAL,
	"at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.at')) VIRTUAL,
	"actions" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.actions')) VIRTUAL,
	"files" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.files')) VIRTUAL,
	"by" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.by')) VIRTUAL,
	"failure" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.failure')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "chunks" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"file" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.file')) VIRTUAL,
	"hash" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.hash')) VIRTUAL,
	"frames" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.frames')) VIRTUAL,
	"bytes" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.bytes')) VIRTUAL,
	"packed" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.packed')) VIRTUAL,
	"from_ms" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.from_ms')) VIRTUAL,
	"to_ms" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.to_ms')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "notes" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.at')) VIRTUAL,
	"text" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.text')) VIRTUAL,
	"warn" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.warn')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "applies" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"checkpoint" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.checkpoint')) VIRTUAL,
	"at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.at')) VIRTUAL,
	"state" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.state')) VIRTUAL,
	"files" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.files')) VIRTUAL,
	"by" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.by')) VIRTUAL,
	"ref" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.ref')) VIRTUAL,
	"journal" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.journal')) VIRTUAL,
	"failure" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.failure')) VIRTUAL,
	"undone_at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.undone_at')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE IF NOT EXISTS "seals" (
	session TEXT NOT NULL,
	key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	doc TEXT NOT NULL,
	"of" INTEGER GENERATED ALWAYS AS (json_extract(doc, '$.of')) VIRTUAL,
	"hash" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.hash')) VIRTUAL,
	"at" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.at')) VIRTUAL,
	"by" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.by')) VIRTUAL,
	"signer" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.signer')) VIRTUAL,
	"signature" TEXT GENERATED ALWAYS AS (json_extract(doc, '$.signature')) VIRTUAL,
	PRIMARY KEY (session, key)
);
CREATE TABLE labels (
	session TEXT NOT NULL PRIMARY KEY,
	doc TEXT NOT NULL
) STRICT;
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
CREATE UNIQUE INDEX sessions_number ON sessions (number);
CREATE INDEX events_of ON events (session, kind, key, seq);
CREATE INDEX sessions_unended ON sessions (number) WHERE state IN ('starting', 'running', 'paused');
CREATE VIEW "execs" AS SELECT session, key, seq, doc, json_extract(doc, '$.action') AS "action", json_extract(doc, '$.pid') AS "pid", json_extract(doc, '$.parent') AS "parent", json_extract(doc, '$.argv') AS "argv", json_extract(doc, '$.program') AS "program", json_extract(doc, '$.cwd') AS "cwd", json_extract(doc, '$.verdict') AS "verdict", json_extract(doc, '$.rule') AS "rule", json_extract(doc, '$.at') AS "at", json_extract(doc, '$.ended_at') AS "ended_at", json_extract(doc, '$.exit.code') AS "exit_code", json_extract(doc, '$.exit.signal') AS "exit_signal", json_extract(doc, '$.failure') AS "failure" FROM (SELECT session, key, seq, coalesce(json_remove(json_patch(CASE WHEN substr(e.doc, 1, 8) = '{"like":' AND json_valid(e.doc) THEN
	coalesce((SELECT doc FROM events WHERE session = e.session AND seq = e.doc ->> '$.like' AND json_valid(doc)), '{}') END, e.doc), '$.like'), e.doc) AS doc FROM events e
WHERE kind = 'exec' AND NOT EXISTS (SELECT 1 FROM events WHERE session = e.session AND kind = e.kind AND key = e.key AND seq > e.seq));
CREATE VIEW "checkpoints" AS SELECT session, key, seq, doc, json_extract(doc, '$.action') AS "action", json_extract(doc, '$.at') AS "at", json_extract(doc, '$.root') AS "root", json_extract(doc, '$.files') AS "files", json_extract(doc, '$.bytes') AS "bytes" FROM (SELECT session, key, seq, coalesce(json_remove(json_patch(CASE WHEN substr(e.doc, 1, 8) = '{"like":' AND json_valid(e.doc) THEN
	coalesce((SELECT doc FROM events WHERE session = e.session AND seq = e.doc ->> '$.like' AND json_valid(doc)), '{}') END, e.doc), '$.like'), e.doc) AS doc FROM events e
WHERE kind = 'checkpoint' AND NOT EXISTS (SELECT 1 FROM events WHERE session = e.session AND kind = e.kind AND key = e.key AND seq > e.seq));
CREATE VIEW "ends" AS SELECT session, key, seq, doc, json_extract(doc, '$.list') AS "list" FROM (SELECT session, key, seq, coalesce(json_remove(json_patch(CASE WHEN substr(e.doc, 1, 8) = '{"like":' AND json_valid(e.doc) THEN
	coalesce((SELECT doc FROM events WHERE session = e.session AND seq = e.doc ->> '$.like' AND json_valid(doc)), '{}') END, e.doc), '$.like'), e.doc) AS doc FROM events e
WHERE kind = 'ends' AND NOT EXISTS (SELECT 1 FROM events WHERE session = e.session AND kind = e.kind AND key = e.key AND seq > e.seq));
CREATE VIEW "claims" AS SELECT session, key, seq, doc, json_extract(doc, '$.by') AS "by", json_extract(doc, '$.at') AS "at", json_extract(doc, '$.event') AS "event", json_extract(doc, '$.tool') AS "tool", json_extract(doc, '$.input') AS "input", json_extract(doc, '$.text') AS "text", json_extract(doc, '$.call') AS "call", json_extract(doc, '$.session_id') AS "session_id" FROM (SELECT session, key, seq, coalesce(json_remove(json_patch(CASE WHEN substr(e.doc, 1, 8) = '{"like":' AND json_valid(e.doc) THEN
	coalesce((SELECT doc FROM events WHERE session = e.session AND seq = e.doc ->> '$.like' AND json_valid(doc)), '{}') END, e.doc), '$.like'), e.doc) AS doc FROM events e
WHERE kind = 'claim' AND NOT EXISTS (SELECT 1 FROM events WHERE session = e.session AND kind = e.kind AND key = e.key AND seq > e.seq));
COMMIT;
