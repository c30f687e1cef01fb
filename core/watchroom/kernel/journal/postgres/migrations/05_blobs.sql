-- The bytes of files that are no texts, by SHA-256; only the newest are kept.

CREATE TABLE blobs (
    sha256 text COLLATE "C" PRIMARY KEY,
    kept   bigint GENERATED ALWAYS AS IDENTITY,
    size   integer NOT NULL,
    data   bytea NOT NULL
);
CREATE INDEX blobs_by_age ON blobs (kept, size);
-- They do not compress, for the most part.
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

-- Agents keep them, too, for they record what their commands leave; what they are is for the server to say.
CREATE FUNCTION keep_blobs(given bytea[], most bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = watchroom, pg_temp AS $$
DECLARE
    member members := writing_member();
    each bytea;
    counted bigint;
    oldest record;
BEGIN
    IF NOT is_owner() THEN
        -- Whoever keeps few bytes drops those of others.
        most := 1073741824;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    -- One at a time: whoever came later would otherwise wait for each blob, in whatever order they are given.
    PERFORM pg_advisory_xact_lock(x'77626c6f6273'::bigint);
    FOREACH each IN ARRAY given LOOP
        IF octet_length(each) > 10485760 THEN
            RAISE EXCEPTION 'a blob has at most 10 MB';
        END IF;
        DELETE FROM blobs WHERE sha256 = encode(sha256(each), 'hex');
        INSERT INTO blobs (sha256, size, data) VALUES (encode(sha256(each), 'hex'), octet_length(each), each);
    END LOOP;
    SELECT coalesce(sum(greatest(size, 4096)), 0) INTO counted FROM blobs;
    FOR oldest IN SELECT sha256, size FROM blobs ORDER BY kept LOOP
        EXIT WHEN counted <= most;
        DELETE FROM blobs WHERE sha256 = oldest.sha256;
        counted := counted - greatest(oldest.size, 4096);
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION keep_blobs FROM PUBLIC;

CREATE OR REPLACE FUNCTION admit(login name, as_actor text, as_kind text) RETURNS void LANGUAGE plpgsql
SET search_path = watchroom, pg_temp AS $$
BEGIN
    INSERT INTO members VALUES (login, as_actor, as_kind)
        ON CONFLICT (role) DO UPDATE SET actor = excluded.actor, kind = excluded.kind;
    EXECUTE format('GRANT USAGE ON SCHEMA watchroom TO %I', login);
    EXECUTE format('GRANT SELECT ON rows, heads, contents, open_items, tip, presences, schema_version, members,'
        ' snapshots, blobs TO %I', login);
    EXECUTE format('GRANT EXECUTE ON FUNCTION append, seq_at, clock_ns, problems, is_owner, is_present,'
        ' renew_presence, release_presence, forget_presence, keep_snapshot, keep_blobs TO %I', login);
END $$;

DO $$
DECLARE
    each members;
BEGIN
    FOR each IN SELECT * FROM members LOOP
        PERFORM admit(each.role, each.actor, each.kind);
    END LOOP;
END $$;
