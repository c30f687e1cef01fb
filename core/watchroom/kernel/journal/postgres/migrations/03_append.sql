-- Appends drafts: `watchroom.rules.append`, decided where all clients meet. One statement, one commit.
--
-- drafts: a JSON array of objects; bodies: the content of each, NULL where it has none. Gives for each draft,
-- in order, what is not known to whoever asked: what became of it, whether that is a new row, and the head of
-- its path before (its columns only where the answer stays short, since it leaves before the commit).
CREATE FUNCTION append(attempt uuid, drafts jsonb, bodies bytea[])
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
    draft record;
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
    INSERT INTO contents AS kept (sha256, content)
        SELECT encode(sha256(large), 'hex'), large FROM unnest(bodies) AS large
        WHERE octet_length(large) > inline_bytes ON CONFLICT DO NOTHING;
    IF current_setting('synchronous_commit') = 'off' THEN
        -- What is visible is on disk, whatever the caller's session or the server is set to.
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT tip.seq, tip.time INTO last, now_ns FROM tip FOR UPDATE;
    now_ns := greatest(now_ns, clock_ns());
    SELECT attempts.seqs INTO known FROM attempts WHERE attempts.key = attempt;
    FOR draft IN
        SELECT * FROM ROWS FROM (jsonb_to_recordset(drafts) AS (
            w boolean, actor text, tool text, zone text, path text, message text, base bigint, outcome text,
            error text, sha256 text, size bigint, detail text, key text, blockable boolean, above text[],
            conditions jsonb
        )) WITH ORDINALITY AS each (w, actor, tool, zone, path, message, base, outcome, error, sha256, size,
            detail, key, blockable, above, conditions, n)
    LOOP
        row_seq := NULL;
        head := NULL;
        extra := '';
        IF known IS NOT NULL THEN
            row_seq := known[draft.n];
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
            body := bodies[draft.n];
            IF body IS NULL THEN
                digest := draft.sha256;
                bytes := draft.size;
            ELSE
                digest := encode(sha256(body), 'hex');
                bytes := octet_length(body);
            END IF;
            is_allowed := may(member, draft.w, draft.actor, draft.tool, draft.zone, draft.path);
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
                    IF broken IS NULL AND draft.blockable AND NOT live THEN
                        SELECT heads.path INTO blocker FROM heads
                            WHERE heads.zone = draft.zone AND heads.path = ANY (draft.above) AND heads.is_live
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
                    WHEN row_error = 'path_blocked' AND extra <> '' THEN
                        '{' || extra || CASE WHEN draft.key = '' THEN ''
                            ELSE ', "idempotency_key": ' || to_json(draft.key) END || '}'
                    WHEN extra = '' THEN draft.detail
                    WHEN draft.detail = '' THEN '{' || extra || '}'
                    ELSE left(draft.detail, -1) || ', ' || extra || '}'
                END,
                CASE WHEN octet_length(body) <= inline_bytes THEN body END
            );
        END IF;
        made := made || row_seq;
        head_seq := head.seq;
        IF draft.n <= few AND octet_length(head.message) + octet_length(head.detail) <= short THEN
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

-- What a member may call is granted to it, by `admit`.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA watchroom FROM PUBLIC;
