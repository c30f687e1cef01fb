-- What a draft must be, whoever appends it; how long anybody can hold up others; what each login may use.
--
-- `append` refuses a whole call if one of its drafts breaks a rule of `check_draft`. The rules of names and
-- texts repeat `watchroom.validation`, which is the master: tests/journal/test_drafts.py compares the two.
-- A further rule is a function that returns NULL or what is wrong, and one line in `check_draft`. These functions
-- have no search_path of their own, which would cost more than the rules: `append` sets it.

CREATE TYPE draft AS (
    w          boolean,
    actor      text COLLATE "C",
    tool       text COLLATE "C",
    zone       text COLLATE "C",
    path       text COLLATE "C",
    message    text COLLATE "C",
    base       bigint,
    outcome    text COLLATE "C",
    error      text COLLATE "C",
    sha256     text COLLATE "C",
    size       bigint,
    detail     text COLLATE "C",
    key        text COLLATE "C",
    conditions jsonb
);

CREATE FUNCTION is_agent_id(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN length(given) <= 64 AND given ~ '^[a-z0-9][a-z0-9_-]*$' AND strpos(given, '_to_') = 0
        AND given NOT IN ('outside', 'system', 'human', 'user', 'con', 'prn', 'aux', 'nul',
            'com1', 'com2', 'com3', 'com4', 'com5', 'com6', 'com7', 'com8', 'com9',
            'lpt1', 'lpt2', 'lpt3', 'lpt4', 'lpt5', 'lpt6', 'lpt7', 'lpt8', 'lpt9');

CREATE FUNCTION is_actor(given text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF given LIKE 'human:%' THEN
        RETURN given ~ '^human:[A-Za-z0-9_\u0080-\U0010FFFF][A-Za-z0-9_ .@\u0080-\U0010FFFF-]{0,63}$';
    END IF;
    RETURN given IN ('system', 'outside') OR is_agent_id(given);
END $$;

CREATE FUNCTION is_session_id(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN length(given) <= 64 AND given ~ '^[A-Za-z0-9][A-Za-z0-9_.-]*$';

CREATE FUNCTION is_board(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN given IN ('global', 'top-layer')
        OR (given ~ '^(mid|bottom)-layer-' AND is_agent_id(regexp_replace(given, '^(mid|bottom)-layer-', '')));

CREATE FUNCTION is_zone(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN given IN ('private', 'handoff', 'collab', 'board', 'lease', 'config', 'workspace', 'session', 'request',
        'realtime', 'task', 'file', 'command', 'agent', 'buffer', 'token', 'revert', 'person', 'settings');

-- Whether a path begins with the ids that its zone wants.
CREATE FUNCTION is_place(zone text, path text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE zone
        WHEN 'board' THEN is_board(path)
        WHEN 'lease' THEN is_board(path)
        WHEN 'agent' THEN is_agent_id(path)
        WHEN 'realtime' THEN path <> '' AND strpos(path, '/') = 0
        WHEN 'session' THEN is_agent_id(split_part(path, '/', 1))
            AND is_session_id(substr(path, length(split_part(path, '/', 1)) + 2))
        WHEN 'buffer' THEN is_agent_id(part_before(path, '/')) AND NOT path LIKE '%/'
        WHEN 'request' THEN is_agent_id(part_before(path, '/')) AND NOT path LIKE '%/'
        WHEN 'handoff' THEN is_agent_id(part_before(part_before(path, '/'), '_to_'))
            AND is_agent_id(holder_of(zone, path, NULL)) AND NOT path LIKE '%/'
        WHEN 'task' THEN is_session_id(path)
        WHEN 'command' THEN is_session_id(split_part(path, '/', 1)) AND is_session_id(split_part(path, '/', 2))
            AND split_part(path, '/', 3) = '' AND NOT path LIKE '%/'
        WHEN 'file' THEN is_session_id(part_before(path, '/')) AND NOT path LIKE '%/'
        ELSE true END;
END $$;

-- Names: who, by which tool, where. A refused call is a note that may quote what was called and where.
CREATE FUNCTION check_names(draft draft) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE
        WHEN is_actor(draft.actor) IS NOT TRUE THEN 'the actor is not valid'
        WHEN is_zone(draft.zone) IS NOT TRUE THEN 'there is no such zone'
        WHEN ((length(draft.tool) <= 64 AND draft.tool ~ '^[a-z][a-z0-9_]*$')
            OR (NOT draft.w AND draft.outcome <> 'ok' AND length(draft.tool) BETWEEN 1 AND 101)) IS NOT TRUE
            THEN 'the tool is not an identifier'
        WHEN (octet_length(draft.path) <= 4096) IS NOT TRUE THEN 'the path is too long'
        WHEN draft.w AND NOT is_place(draft.zone, draft.path) THEN 'the path is not valid in this zone'
    END;
END $$;

CREATE FUNCTION check_numbers(draft draft) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN draft.w IS NULL THEN 'it neither writes nor notes'
        WHEN (draft.base BETWEEN -1 AND 9007199254740991 OR (NOT draft.w AND draft.base IS NULL)) IS NOT TRUE
            THEN 'the version that it starts from is not valid'
        WHEN draft.size NOT BETWEEN 0 AND 9007199254740991 THEN 'the size is not valid'
        WHEN draft.w AND (draft.sha256 IS NOT NULL OR draft.size IS NOT NULL) THEN 'a write has its own checksum'
        WHEN draft.sha256 !~ '^[0-9a-f]{64}$' OR (draft.sha256 IS NOT NULL AND draft.size IS NULL)
            THEN 'the checksum is not valid'
        WHEN NOT draft.w AND (draft.outcome IN ('ok', 'conflict', 'denied', 'failed')) IS NOT TRUE
            THEN 'the outcome is not valid'
        WHEN draft.w AND coalesce(draft.outcome, draft.error) IS NOT NULL THEN 'a write has no outcome of its own'
    END;

-- An error is a code of the program.
CREATE FUNCTION is_error(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN length(given) <= 64 AND given ~ '^[a-z0-9_]*$';

CREATE FUNCTION check_texts(draft draft) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN (octet_length(draft.message) <= 65536) IS NOT TRUE THEN 'the message is too long'
        WHEN (octet_length(draft.key) <= 4096) IS NOT TRUE THEN 'the key is too long'
        WHEN NOT draft.w AND is_error(draft.error) IS NOT TRUE THEN 'the error is not a code'
    END;

-- The conditions of a write: [zone, path, row, error] each.
CREATE FUNCTION check_conditions(draft draft) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF draft.conditions IS NULL OR jsonb_typeof(draft.conditions) = 'null' THEN
        RETURN NULL;
    ELSIF jsonb_typeof(draft.conditions) <> 'array' THEN
        RETURN 'the conditions are not a list';
    ELSIF jsonb_array_length(draft.conditions) > 1000 THEN
        RETURN 'there are too many conditions';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(draft.conditions) AS condition
        WHERE (is_zone(condition ->> 0) AND jsonb_typeof(condition -> 1) = 'string'
            AND jsonb_typeof(condition -> 2) = 'number' AND is_error(condition ->> 3)) IS NOT TRUE) THEN
        RETURN 'a condition is not valid';
    END IF;
    RETURN NULL;
END $$;

-- A detail is a JSON object of bounded size and depth. To read it as jsonb raises an error for NUL and for
-- halves of surrogate pairs, which no reader could encode.
CREATE FUNCTION check_detail(draft draft) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    fields jsonb;
BEGIN
    IF draft.detail IS NULL OR octet_length(draft.detail) > 4194304 THEN
        RETURN 'the detail is too large';
    ELSIF draft.detail = '' THEN
        RETURN CASE WHEN draft.key <> '' THEN 'the key is missing in the detail' END;
    END IF;
    fields := draft.detail::jsonb;
    IF jsonb_typeof(fields) <> 'object' THEN
        RETURN 'the detail is not an object';
    ELSIF length(draft.detail) - length(translate(draft.detail, '[{', '')) > 100
        AND jsonb_path_exists(fields, '$.**{101 to last}') THEN
        RETURN 'the detail is nested too deeply';
    ELSIF nullif(draft.key, '') IS DISTINCT FROM (fields ->> 'idempotency_key') THEN
        RETURN 'the key is not that of the detail';
    END IF;
    RETURN NULL;
END $$;

-- A content is text in UTF-8. Whole files have the bound of `watchroom.model.MAX_TEXT_BYTES`, and no NUL. To
-- read it as text raises an error for bytes that are not UTF-8.
CREATE FUNCTION check_content(draft draft, body bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    given text;
BEGIN
    IF body IS NULL THEN
        RETURN CASE WHEN draft.w AND draft.zone IN ('realtime', 'session', 'request')
            THEN 'what is in this zone is never deleted' END;
    ELSIF octet_length(body) > 10485760
        AND draft.zone IN ('private', 'handoff', 'collab', 'board', 'lease', 'config', 'buffer', 'request') THEN
        RETURN 'the content is too large';
    ELSIF position('\x00'::bytea IN body) > 0 THEN
        RETURN 'the content has a NUL character';
    END IF;
    given := convert_from(body, 'UTF8');
    IF draft.w AND (draft.zone IN ('realtime', 'lease') OR (draft.zone = 'request' AND given <> ''))
        AND json_typeof(given::json) <> 'object' THEN
        RETURN 'the content is not a JSON object';
    END IF;
    RETURN NULL;
END $$;

-- The first rule that a draft breaks, whoever appends it; NULL if there is none.
CREATE FUNCTION check_draft(member members, draft draft, body bytea) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(
        check_numbers(draft),
        check_names(draft),
        check_texts(draft),
        check_conditions(draft),
        check_detail(draft),
        check_content(draft, body)
    );
END $$;

-- How long the newest row can be held. Appends queue for an advisory lock and then lock the row. The queue for
-- the row itself would not be fair: each commit makes a new version of it, and all who wait queue again.
-- A session that waits looks who holds it, after each `lock_timeout`. A member's session that holds it and is idle
-- is ended, and so are the sessions of a login that holds it at two looks.

-- The locks of all sessions on the newest row and on the queue for it.
CREATE FUNCTION tip_locks() RETURNS TABLE (pid integer, granted boolean)
LANGUAGE sql VOLATILE SET search_path = watchroom, pg_temp AS $$
    SELECT l.pid, l.granted FROM pg_locks AS l
    WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND (
        (l.locktype = 'relation' AND l.relation = 'watchroom.tip'::regclass
            AND l.mode IN ('RowShareLock', 'RowExclusiveLock'))
        OR (l.locktype = 'advisory' AND l.classid = 'watchroom.tip'::regclass AND l.objid = 0 AND l.objsubid = 2))
$$;

-- The sessions that hold the newest row. A session that waits for the row itself has a lock on the tuple.
CREATE FUNCTION tip_holders()
RETURNS TABLE (role name, actor text, is_member boolean, is_idle boolean)
LANGUAGE plpgsql VOLATILE SET search_path = watchroom, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM pg_stat_clear_snapshot();
    RETURN QUERY
        SELECT a.usename, coalesce(m.actor, 'the owner'), m.role IS NOT NULL,
            a.state LIKE 'idle%' AND a.state_change < clock_timestamp() - interval '1 s'
        FROM pg_stat_activity AS a LEFT JOIN members AS m ON m.role = a.usename
        WHERE a.pid <> pg_backend_pid() AND EXISTS (SELECT FROM tip_locks() AS l WHERE l.pid = a.pid AND l.granted)
            -- Such a commit waits for the disk or for a standby: to end its session would not undo it.
            AND lower(coalesce(a.wait_event, '')) NOT IN ('syncrep', 'walsync', 'walwrite')
            AND NOT EXISTS (SELECT FROM pg_locks AS w WHERE w.locktype = 'tuple'
                AND w.relation = 'watchroom.tip'::regclass AND w.pid = a.pid);
END $$;

-- Ends the sessions of a login that hold the newest row or wait for it. Otherwise its next session would have it.
CREATE FUNCTION end_sessions_at_tip(login name) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = watchroom, pg_temp AS $$
BEGIN
    PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity AS a
        WHERE a.usename = login AND a.pid <> pg_backend_pid()
            AND EXISTS (SELECT FROM tip_locks() AS l WHERE l.pid = a.pid);
EXCEPTION WHEN insufficient_privilege THEN
    -- The owner of the tables is not a member of the role. The error names the holder.
    RETURN;
END $$;

CREATE FUNCTION take_tip(OUT seq bigint, OUT at bigint) LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s' SET search_path = watchroom, pg_temp AS $$
#variable_conflict use_column
DECLARE
    looks CONSTANT integer := 5;
    queue CONSTANT integer := 'watchroom.tip'::regclass::oid;
    holder record;
    seen name[] := '{}';
    known name[];
    names text;
BEGIN
    -- This does not overtake: a free lock goes to the first who waits for it.
    IF pg_try_advisory_xact_lock(queue, 0) THEN
        SELECT tip.seq, tip.time INTO seq, at FROM tip FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    FOR look IN 1..looks LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock(queue, 0);
            -- Not FOR UPDATE: the lock of a subtransaction and the update after it would be a multixact.
            UPDATE tip SET seq = tip.seq RETURNING tip.seq, tip.time INTO seq, at;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            known := seen;
            seen := '{}';
        END;
        names := NULL;
        FOR holder IN SELECT * FROM tip_holders() LOOP
            names := concat_ws(', ', names, holder.actor);
            seen := seen || holder.role;
            IF holder.is_member AND (holder.is_idle OR holder.role = ANY (known)) THEN
                PERFORM end_sessions_at_tip(holder.role);
            END IF;
        END LOOP;
    END LOOP;
    RAISE EXCEPTION 'the newest row is held by another session' USING
        ERRCODE = 'lock_not_available', DETAIL = coalesce(names, '');
END $$;

-- The folders of a path, from the top: `watchroom.rules.append.folders_above`.
CREATE FUNCTION folders_above(path text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    part text;
    above text := '';
    found text[] := '{}';
BEGIN
    FOREACH part IN ARRAY string_to_array(path, '/') LOOP
        found := found || (above || part);
        above := above || part || '/';
    END LOOP;
    RETURN found[:cardinality(found) - 1];
END $$;

-- Appends drafts: `watchroom.rules.append`, decided where all clients meet. One statement, one commit.
--
-- drafts: a JSON array of objects, each a `draft`. bodies: the content of each draft, or NULL. Returns one row per
-- draft, in order: the outcome, whether the row is new, and the head of its path before. The columns of the head
-- are left out if they are long, because the answer leaves before the commit.
CREATE OR REPLACE FUNCTION append(attempt uuid, drafts jsonb, bodies bytea[])
RETURNS TABLE (
    row_seq bigint, row_time bigint, row_version bigint, row_outcome text, row_error text, extra text,
    is_new boolean,
    head_seq bigint, head_time bigint, head_actor text, head_tool text, head_version bigint, head_base bigint,
    head_message text, head_sha256 text, head_size bigint, head_detail text
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET lock_timeout = '10s' SET search_path = watchroom, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    inline_bytes CONSTANT integer := 65536;
    short CONSTANT integer := 1000;
    few CONSTANT integer := 16;
    most_drafts CONSTANT integer := 10000;
    most_bytes CONSTANT integer := 128 * 1024 * 1024;
    known bigint[];
    made bigint[] := '{}';
    last bigint;
    now_ns bigint;
    each_draft record;
    draft draft;
    flaw text;
    head rows%ROWTYPE;
    body bytea;
    digest text;
    bytes bigint;
    blocker text;
    broken text;
    current_version bigint;
    live boolean;
    member members;
    is_allowed boolean;
BEGIN
    member := writing_member();
    IF jsonb_array_length(drafts) > most_drafts OR (SELECT max(octet_length(each)) FROM unnest(bodies) AS each)
        > most_bytes THEN
        RAISE EXCEPTION 'at most % drafts of % bytes each', most_drafts, most_bytes
            USING ERRCODE = 'program_limit_exceeded';
    END IF;
    SELECT format('draft %s: %s', given.n, given.flaw) INTO flaw FROM (
        SELECT item.n, check_draft(member, jsonb_populate_record(NULL::draft, item.fields), item.body) AS flaw
            FROM ROWS FROM (jsonb_array_elements(drafts), unnest(bodies))
                WITH ORDINALITY AS item (fields, body, n)
        ) AS given WHERE given.flaw IS NOT NULL LIMIT 1;
    IF flaw IS NOT NULL OR cardinality(bodies) > jsonb_array_length(drafts) THEN
        RAISE EXCEPTION '%', coalesce(flaw, 'there are more contents than drafts')
            USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO contents AS kept (sha256, content)
        SELECT encode(sha256(large), 'hex'), large FROM unnest(bodies) AS large
        WHERE octet_length(large) > inline_bytes ON CONFLICT DO NOTHING;
    IF current_setting('synchronous_commit') = 'off' THEN
        -- What is visible is on disk, whatever the caller's session or the server is set to.
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT taken.seq, taken.at INTO last, now_ns FROM take_tip() AS taken;
    now_ns := greatest(now_ns, clock_ns());
    SELECT attempts.seqs INTO known FROM attempts WHERE attempts.key = attempt;
    FOR each_draft IN SELECT item.fields, item.n FROM jsonb_array_elements(drafts)
        WITH ORDINALITY AS item (fields, n)
    LOOP
        draft := jsonb_populate_record(NULL::draft, each_draft.fields);
        row_seq := NULL;
        head := NULL;
        extra := '';
        IF known IS NOT NULL THEN
            row_seq := known[each_draft.n];
        ELSIF draft.key <> '' THEN
            SELECT rows.seq INTO row_seq FROM rows
                WHERE rows.idempotency_key = draft.key AND rows.actor = draft.actor;
        END IF;
        is_new := row_seq IS NULL;
        IF NOT is_new THEN
            SELECT rows.time, rows.version, rows.outcome, rows.error
                INTO row_time, row_version, row_outcome, row_error FROM rows WHERE rows.seq = row_seq;
        ELSE
            last := last + 1;
            row_seq := last;
            row_time := now_ns;
            row_version := NULL;
            row_outcome := draft.outcome;
            row_error := draft.error;
            body := bodies[each_draft.n];
            IF body IS NULL THEN
                digest := draft.sha256;
                bytes := draft.size;
            ELSE
                digest := encode(sha256(body), 'hex');
                bytes := octet_length(body);
            END IF;
            is_allowed := may(member, draft.w, draft.actor, draft.tool, draft.zone, draft.path)
                AND may_change(member, draft);
            IF NOT is_allowed THEN
                row_outcome := 'denied';
                row_error := 'permission_denied';
            ELSIF draft.w THEN
                SELECT rows.* INTO head FROM heads JOIN rows ON rows.seq = heads.seq
                    WHERE heads.zone = draft.zone AND heads.path = draft.path;
                current_version := coalesce(head.version, 0);
                live := head.sha256 IS NOT NULL;
                broken := NULL;
                blocker := NULL;
                IF draft.base NOT IN (-1, current_version) AND NOT (draft.base = 0 AND NOT live) THEN
                    row_outcome := 'conflict';
                    row_error := 'version_conflict';
                    extra := format('"current": %s, "current_author": %s', current_version,
                        to_json(coalesce(head.actor, '')));
                ELSE
                    IF draft.conditions IS NOT NULL THEN
                        SELECT condition ->> 3 INTO broken
                            FROM jsonb_array_elements(draft.conditions) WITH ORDINALITY AS c (condition, n)
                            WHERE coalesce((SELECT heads.seq FROM heads WHERE heads.zone = condition ->> 0
                                AND heads.path = condition ->> 1), 0) <> (condition ->> 2)::bigint
                            ORDER BY c.n LIMIT 1;
                    END IF;
                    IF broken IS NULL AND body IS NOT NULL AND draft.zone <> 'file' AND NOT live THEN
                        SELECT heads.path INTO blocker FROM heads
                            WHERE heads.zone = draft.zone AND heads.path = ANY (folders_above(draft.path))
                                AND heads.is_live
                            ORDER BY heads.path LIMIT 1;
                        IF blocker IS NULL THEN
                            SELECT heads.path INTO blocker FROM heads
                                WHERE heads.zone = draft.zone AND heads.path > draft.path || '/'
                                AND heads.path < draft.path || '0' AND heads.is_live
                                ORDER BY heads.path LIMIT 1;
                        END IF;
                    END IF;
                    IF broken IS NOT NULL THEN
                        row_outcome := 'failed';
                        row_error := broken;
                    ELSIF blocker IS NOT NULL THEN
                        row_outcome := 'failed';
                        row_error := 'path_blocked';
                        extra := format('"by": %s', to_json(blocker));
                    ELSE
                        row_version := current_version + 1;
                        row_outcome := 'ok';
                        row_error := '';
                    END IF;
                END IF;
            END IF;
            INSERT INTO rows VALUES (
                row_seq, row_time, draft.actor, draft.tool, draft.zone, draft.path, row_version, draft.base,
                row_outcome, row_error, draft.message, digest, bytes,
                CASE
                    WHEN extra = '' THEN draft.detail
                    WHEN draft.detail = '' THEN '{' || extra || '}'
                    ELSE left(draft.detail, -1) || ', ' || extra || '}'
                END,
                CASE WHEN octet_length(body) <= inline_bytes THEN body END
            );
        END IF;
        made := made || row_seq;
        head_seq := head.seq;
        IF each_draft.n <= few AND octet_length(head.message) + octet_length(head.detail) <= short THEN
            head_time := head.time;
            head_actor := head.actor;
            head_tool := head.tool;
            head_version := head.version;
            head_base := head.base;
            head_message := head.message;
            head_sha256 := head.sha256;
            head_size := head.size;
            head_detail := head.detail;
        ELSE
            head_actor := NULL;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF known IS NULL THEN
        UPDATE tip SET seq = last, time = now_ns;
        INSERT INTO attempts (key, seqs) VALUES (attempt, made);
        IF last / 1000 > (last - cardinality(made)) / 1000 THEN
            -- Nobody asks after a day what became of an append.
            DELETE FROM attempts WHERE attempts.key IN (
                SELECT old.key FROM attempts AS old WHERE old.at < clock_timestamp() - interval '1 day'
                    ORDER BY old.at LIMIT 5000);
        END IF;
    END IF;
END $$;

-- The leases. To renew one locks no other, to forget one waits for nobody.
CREATE OR REPLACE FUNCTION renew_presence(id text, process bigint, machine text, since bigint, resume text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '2s' SET search_path = watchroom, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    most_of_login CONSTANT integer := 200;
BEGIN
    -- Nothing waits for the disk, in this transaction alone.
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE presences AS p SET backend = pg_backend_pid(), seen = clock_timestamp()
        WHERE p.id = renew_presence.id AND p.role = session_user;
    IF FOUND THEN
        RETURN;
    ELSIF id !~ '^[A-Za-z0-9_-]{1,64}$'
        OR (SELECT count(*) FROM presences AS p WHERE p.role = session_user) >= most_of_login THEN
        RAISE EXCEPTION 'a lease with this id, or one more, is not possible' USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO presences AS p VALUES (id, process, left(machine, 255), since, left(resume, 4096),
        pg_backend_pid(), clock_timestamp(), session_user) ON CONFLICT DO NOTHING;
END $$;

CREATE OR REPLACE FUNCTION forget_presence(gone text, lease interval, lost interval) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = watchroom, pg_temp AS $$
    DELETE FROM presences WHERE id IN (SELECT p.id FROM presences AS p WHERE p.id = gone
        AND NOT is_present(p.seen, p.backend, greatest(lease, interval '12 s'), greatest(lost, interval '4 s'))
        FOR UPDATE SKIP LOCKED)
$$;

ALTER FUNCTION keep_blobs SET lock_timeout = '10s';
ALTER FUNCTION keep_snapshot SET lock_timeout = '10s';

-- Who holds the lock of an exclusive section, by its number (see `watchroom.journal.postgres.locks`).
CREATE FUNCTION section_holder(number bigint) RETURNS text LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = watchroom, pg_temp AS $$
    SELECT coalesce(m.actor, 'the owner') FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
        LEFT JOIN members AS m ON m.role = a.usename
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (l.classid::bigint << 32 | l.objid::bigint) = number LIMIT 1
$$;

-- What a login may use. A login can change these timeouts for its own sessions: they are for processes that
-- hang. The number of its connections it cannot change, nor that `append` ends it.
CREATE FUNCTION limit_login(login name, kind text) RETURNS void LANGUAGE plpgsql
SET search_path = watchroom, pg_temp AS $$
DECLARE
    owner name;
    is_superuser boolean;
    setting text[];
BEGIN
    EXECUTE format('ALTER ROLE %I CONNECTION LIMIT %s', login, CASE kind WHEN 'supervisor' THEN 60 ELSE 30 END);
    FOREACH setting SLICE 1 IN ARRAY ARRAY[
        ['idle_in_transaction_session_timeout', '5min'], ['statement_timeout', '5min'], ['lock_timeout', '10s']]
    LOOP
        EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %s = %L', login, current_database(), setting[1], setting[2]);
    END LOOP;
    SELECT r.rolname, r.rolsuper INTO owner, is_superuser FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
        WHERE c.oid = 'watchroom.rows'::regclass;
    IF NOT is_superuser AND NOT pg_has_role(owner, login, 'USAGE') THEN
        -- Only a member of a role sees what its sessions do, and ends them.
        EXECUTE format('GRANT %I TO %I', login, owner);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION admit(login name, as_actor text, as_kind text) RETURNS void LANGUAGE plpgsql
SET search_path = watchroom, pg_temp AS $$
BEGIN
    INSERT INTO members VALUES (login, as_actor, as_kind)
        ON CONFLICT (role) DO UPDATE SET actor = excluded.actor, kind = excluded.kind;
    EXECUTE format('GRANT USAGE ON SCHEMA watchroom TO %I', login);
    EXECUTE format('GRANT SELECT ON rows, heads, contents, open_items, tip, presences, schema_version, members,'
        ' snapshots, blobs TO %I', login);
    EXECUTE format('GRANT EXECUTE ON FUNCTION append, seq_at, clock_ns, problems, is_owner, is_present,'
        ' renew_presence, release_presence, forget_presence, keep_snapshot, keep_blobs, section_holder TO %I', login);
    PERFORM limit_login(login, as_kind);
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA watchroom FROM PUBLIC;

DO $$
DECLARE
    each members;
BEGIN
    FOR each IN SELECT * FROM members LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION section_holder TO %I', each.role);
        BEGIN
            PERFORM limit_login(each.role, each.kind);
        EXCEPTION WHEN insufficient_privilege THEN
            -- Another role made this login. `watchroom member add` by who may change it sets the limits.
            RAISE WARNING 'the limits of % could not be set', each.role;
        END;
    END LOOP;
END $$;
