-- The rows, what is kept beside them so that each question is one look at an index, and what keeps it there.
-- Texts sort by their bytes, as everywhere in Watchroom.

CREATE TABLE rows (
    seq             bigint PRIMARY KEY,
    time            bigint NOT NULL,
    actor           text COLLATE "C" NOT NULL,
    tool            text COLLATE "C" NOT NULL,
    zone            text COLLATE "C" NOT NULL,
    path            text COLLATE "C" NOT NULL,
    version         bigint,
    base            bigint,
    outcome         text COLLATE "C" NOT NULL CHECK (outcome IN ('ok', 'conflict', 'denied', 'failed')),
    error           text COLLATE "C" NOT NULL,
    message         text COLLATE "C" NOT NULL,
    sha256          text COLLATE "C",
    size            bigint,
    detail          text COLLATE "C" NOT NULL,
    content         bytea,
    topic           text COLLATE "C",
    call            text COLLATE "C",
    idempotency_key text COLLATE "C",
    CHECK (version IS NULL OR (version > 0 AND outcome = 'ok'))
);
CREATE UNIQUE INDEX rows_version ON rows (zone, path, version) WHERE version IS NOT NULL;
CREATE INDEX rows_moment ON rows (zone, path, seq) WHERE version IS NOT NULL;
CREATE INDEX rows_refused ON rows (zone, path, seq) WHERE outcome <> 'ok';
CREATE INDEX rows_note ON rows (zone, path, actor, tool, seq) WHERE version IS NULL AND outcome = 'ok';
CREATE INDEX rows_settled ON rows (zone, path, seq)
    WHERE tool IN ('resolve_conflict', 'dismiss_conflict', 'revert_outside_edit') AND outcome = 'ok';
CREATE INDEX rows_topic ON rows (topic, seq) WHERE topic IS NOT NULL;
CREATE INDEX rows_call ON rows (call, actor) WHERE call IS NOT NULL;
CREATE UNIQUE INDEX rows_key ON rows (idempotency_key, actor) WHERE idempotency_key IS NOT NULL;

-- Contents that are too large to stand in their rows, each once.
CREATE TABLE contents (sha256 text COLLATE "C" PRIMARY KEY, content bytea NOT NULL);

-- The newest row. Whoever appends holds it until the commit is on disk: so rows become visible in their order.
CREATE TABLE tip (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq  bigint NOT NULL,
    time bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO tip (seq, time) VALUES (0, 0);

-- Each append by the key that its client gave it, and the row of each draft: it may be asked for again.
CREATE TABLE attempts (
    key  uuid PRIMARY KEY,
    seqs bigint[] NOT NULL,
    at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX attempts_at ON attempts (at);

-- The current version of each path.
CREATE TABLE heads (
    zone    text COLLATE "C",
    path    text COLLATE "C",
    seq     bigint NOT NULL,
    is_live boolean NOT NULL,
    PRIMARY KEY (zone, path)
) WITH (fillfactor = 50);

-- What is open for whom: see `watchroom.journal.topics`.
CREATE TABLE open_items (
    zone   text COLLATE "C",
    holder text COLLATE "C",
    path   text COLLATE "C",
    seq    bigint NOT NULL,
    PRIMARY KEY (zone, holder, path)
);

-- Whoever runs something: see `Journal.present`.
CREATE TABLE presences (
    id      text COLLATE "C" PRIMARY KEY,
    process bigint NOT NULL,
    machine text COLLATE "C" NOT NULL,
    since   bigint NOT NULL,
    resume  text COLLATE "C" NOT NULL,
    backend integer NOT NULL,
    seen    timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION part_before(whole text, separator text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE strpos(whole, separator) WHEN 0 THEN '' ELSE left(whole, strpos(whole, separator) - 1) END;

CREATE FUNCTION holder_of(zone text, path text, detail json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE zone
        WHEN 'handoff' THEN substr(part_before(path, '/'), strpos(part_before(path, '/'), '_to_') + 4)
        WHEN 'buffer' THEN part_before(path, '/')
        WHEN 'command' THEN part_before(path, '/')
        WHEN 'agent' THEN CASE json_typeof(detail -> 'task') WHEN 'string' THEN detail ->> 'task' ELSE '' END
        ELSE '' END;

-- Whatever makes rows, each is found by what it is asked for.
CREATE FUNCTION index_row() RETURNS trigger LANGUAGE plpgsql SET search_path = watchroom, pg_temp AS $$
DECLARE
    fields json := CASE WHEN NEW.detail <> '' THEN NEW.detail::json END;
    holder_name text;
BEGIN
    IF json_typeof(fields -> 'call') = 'string' THEN NEW.call := fields ->> 'call'; END IF;
    IF json_typeof(fields -> 'idempotency_key') = 'string' THEN
        NEW.idempotency_key := fields ->> 'idempotency_key';
    END IF;
    NEW.topic := CASE
        WHEN NEW.outcome <> 'ok' THEN
            CASE WHEN NEW.actor = 'outside' THEN 'outside:' || NEW.zone || ':' || NEW.path END
        WHEN NEW.zone IN ('session', 'agent') AND NEW.version IS NULL
            AND NEW.tool IN ('pause_agent', 'resume_agent', 'cancel_agent', 'send_message')
            THEN NEW.zone || ':' || NEW.path
        WHEN NEW.zone = 'session' AND NEW.version IS NOT NULL THEN 'steps:' || NEW.actor
        WHEN NEW.zone = 'handoff' AND NEW.version IS NOT NULL AND NEW.sha256 IS NOT NULL
            THEN 'handoff:' || holder_of(NEW.zone, NEW.path, fields)
        WHEN NEW.tool IN ('resolve_conflict', 'dismiss_conflict', 'revert_outside_edit') THEN 'settled'
        WHEN NEW.zone = 'board' AND NEW.version IS NOT NULL AND json_typeof(fields -> 'section') = 'string'
            THEN 'section:' || NEW.actor || E'\n' || NEW.path || E'\n' || (fields ->> 'section')
    END;
    IF NEW.version IS NOT NULL THEN
        INSERT INTO heads VALUES (NEW.zone, NEW.path, NEW.seq, NEW.sha256 IS NOT NULL)
            ON CONFLICT (zone, path) DO UPDATE SET seq = excluded.seq, is_live = excluded.is_live;
        IF NEW.zone IN ('handoff', 'buffer', 'task', 'agent', 'command') THEN
            holder_name := holder_of(NEW.zone, NEW.path, fields);
            DELETE FROM open_items AS item
                WHERE item.zone = NEW.zone AND item.holder = holder_name AND item.path = NEW.path;
            IF (CASE WHEN NEW.zone = 'agent' THEN true WHEN NEW.zone IN ('task', 'command') THEN NEW.version = 1
                ELSE NEW.sha256 IS NOT NULL END) THEN
                INSERT INTO open_items VALUES (NEW.zone, holder_name, NEW.path, NEW.seq);
            END IF;
        END IF;
    ELSIF NEW.zone = 'handoff' AND NEW.tool = 'acknowledge_handoff' AND NEW.outcome = 'ok' THEN
        DELETE FROM open_items AS item
            WHERE item.zone = 'handoff' AND item.holder = NEW.actor AND item.path = NEW.path
            AND (SELECT version FROM rows WHERE rows.seq = item.seq) <= coalesce(NEW.base, 0);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER rows_are_indexed BEFORE INSERT ON rows FOR EACH ROW EXECUTE FUNCTION index_row();

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are immutable', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER rows_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON rows
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER contents_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON contents
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION clock_ns() RETURNS bigint LANGUAGE sql VOLATILE
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000;

-- The last row that is not younger than a time. Times never fall from row to row.
CREATE FUNCTION seq_at(moment bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = watchroom, pg_temp AS $$
DECLARE
    low bigint := 0;
    high bigint;
    middle bigint;
    found record;
BEGIN
    SELECT coalesce(max(seq), 0) INTO high FROM rows;
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        SELECT seq, time INTO found FROM rows WHERE seq <= middle ORDER BY seq DESC LIMIT 1;
        IF found IS NULL OR found.time <= moment THEN low := middle; ELSE high := found.seq - 1; END IF;
    END LOOP;
    SELECT seq INTO low FROM rows WHERE seq <= low ORDER BY seq DESC LIMIT 1;
    RETURN coalesce(low, 0);
END $$;

-- What is broken: versions that are missing, contents that are not as their checksum says. Reads everything.
CREATE FUNCTION problems() RETURNS TABLE (what text, zone text, path text, version bigint)
LANGUAGE sql STABLE SET search_path = watchroom, pg_temp AS $$
    SELECT format('%s versions are kept, the newest is v%s', count(*), max(version)), zone, path, NULL::bigint
        FROM rows WHERE version IS NOT NULL GROUP BY zone, path HAVING count(*) <> max(version)
    UNION ALL
    SELECT format('%s: its content %s', CASE WHEN version IS NULL THEN 'row ' || seq
            ELSE 'v' || version || ' (row ' || seq || ')' END,
            CASE WHEN found IS NULL THEN 'is missing' ELSE 'does not match its checksum' END),
            zone, path, version
        FROM (SELECT rows.*, coalesce(rows.content, contents.content) AS found
            FROM rows LEFT JOIN contents ON rows.content IS NULL AND contents.sha256 = rows.sha256
            WHERE rows.sha256 IS NOT NULL) AS row
        WHERE (found IS NULL AND version IS NOT NULL) OR encode(sha256(found), 'hex') <> sha256
    UNION ALL
    SELECT format('the newest row is %s, the tip says %s', newest, tip.seq), 'workspace', '', NULL
        FROM tip, (SELECT coalesce(max(seq), 0) AS newest FROM rows) AS last WHERE tip.seq <> newest
$$;
