-- What readers keep so that they need not begin at the first row. Derived: any of it may be deleted.

CREATE TABLE snapshots (
    form text COLLATE "C",
    seq  bigint,
    data bytea NOT NULL,
    PRIMARY KEY (form, seq)
);

-- A snapshot is what everybody sees next, so an agent keeps none.
CREATE FUNCTION keep_snapshot(new_form text, new_seq bigint, new_data bytea, dropped bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = watchroom, pg_temp AS $$
DECLARE
    member members := writing_member();
BEGIN
    IF member.kind = 'agent' THEN
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO snapshots VALUES (new_form, new_seq, new_data)
        ON CONFLICT (form, seq) DO UPDATE SET data = excluded.data;
    DELETE FROM snapshots WHERE form = new_form AND seq = ANY (dropped);
END $$;
REVOKE ALL ON FUNCTION keep_snapshot FROM PUBLIC;

CREATE OR REPLACE FUNCTION admit(login name, as_actor text, as_kind text) RETURNS void LANGUAGE plpgsql
SET search_path = watchroom, pg_temp AS $$
BEGIN
    INSERT INTO members VALUES (login, as_actor, as_kind)
        ON CONFLICT (role) DO UPDATE SET actor = excluded.actor, kind = excluded.kind;
    EXECUTE format('GRANT USAGE ON SCHEMA watchroom TO %I', login);
    EXECUTE format('GRANT SELECT ON rows, heads, contents, open_items, tip, presences, schema_version, members,'
        ' snapshots TO %I', login);
    EXECUTE format('GRANT EXECUTE ON FUNCTION append, seq_at, clock_ns, problems, is_owner, is_present,'
        ' renew_presence, release_presence, forget_presence, keep_snapshot TO %I', login);
END $$;

DO $$
DECLARE
    each members;
BEGIN
    FOR each IN SELECT * FROM members LOOP
        PERFORM admit(each.role, each.actor, each.kind);
    END LOOP;
END $$;
