-- Who may write what: each login role is one agent or one person. The owner of the tables may do all.

-- kind: agent, supervisor (a person who answers and settles), viewer (a person who only looks).
CREATE TABLE members (
    role  name PRIMARY KEY,
    actor text COLLATE "C" NOT NULL,
    kind  text COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'supervisor', 'viewer'))
);

CREATE FUNCTION is_owner() RETURNS boolean LANGUAGE sql STABLE SET search_path = watchroom, pg_temp AS $$
    SELECT pg_has_role(session_user, relowner, 'MEMBER') FROM pg_class WHERE oid = 'watchroom.rows'::regclass
$$;

-- As whom the caller may write besides itself. Raises insufficient_privilege for who may not write at all.
CREATE FUNCTION writing_member() RETURNS members LANGUAGE plpgsql STABLE
SET search_path = watchroom, pg_temp AS $$
DECLARE
    member members;
BEGIN
    SELECT * INTO member FROM members WHERE role = session_user;
    IF NOT FOUND AND NOT is_owner() THEN
        RAISE EXCEPTION '% is no member of this workspace', session_user
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF member.kind = 'viewer' THEN
        RAISE EXCEPTION '% may only look', member.actor USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN member;
END $$;

-- Whether a member may make this row. Nobody writes in another's name: that raises insufficient_privilege.
CREATE FUNCTION may(member members, is_write boolean, actor text, tool text, zone text, path text)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path = watchroom, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    IF member.kind IS NULL THEN
        RETURN true;
    END IF;
    IF actor = 'system' AND NOT is_write AND tool IN ('process_lost', 'lay_out') THEN
        -- What every checkout tells of itself.
        RETURN true;
    END IF;
    IF member.kind = 'supervisor' THEN
        IF actor NOT IN (member.actor, 'system', 'outside') THEN
            RAISE EXCEPTION '% cannot write as %', member.actor, actor USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN zone <> 'token' AND NOT (is_write AND zone = 'private' AND actor <> 'outside');
    END IF;
    -- What its own process has to tell of its files, its budgets, its commands and its questions.
    IF actor = 'outside' AND (NOT is_write OR zone = 'file'
            OR (zone = 'private' AND starts_with(path, member.actor || '/'))) THEN
        RETURN true;
    END IF;
    IF actor = 'system' AND (
            (NOT is_write AND tool IN ('budget_warning', 'budget_reached'))
            OR (NOT is_write AND zone = 'agent' AND path = member.actor AND tool = 'pause_agent')
            OR (is_write AND zone = 'lease' AND tool = 'lease_expired')
            OR (is_write AND zone = 'command' AND tool = 'end_command')
            OR (is_write AND zone = 'request' AND tool = 'withdraw_request'
                AND starts_with(path, member.actor || '/'))) THEN
        RETURN true;
    END IF;
    IF actor <> member.actor THEN
        RAISE EXCEPTION '% cannot write as %', member.actor, actor USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF tool IN ('answer_request', 'resolve_conflict', 'dismiss_conflict', 'revert_outside_edit', 'stop_agents',
            'release_agents', 'set_budget', 'mark_as_seen', 'set_host', 'submit_requirement', 'end_task')
        OR (zone = 'session' AND tool IN ('pause_agent', 'resume_agent', 'cancel_agent')) THEN
        RETURN false;
    END IF;
    IF NOT is_write THEN
        RETURN true;
    END IF;
    RETURN CASE
        WHEN zone IN ('private', 'buffer', 'session') THEN starts_with(path, member.actor || '/')
        WHEN zone = 'handoff' THEN starts_with(path, member.actor || '_to_')
        ELSE zone IN ('collab', 'board', 'lease', 'realtime', 'request', 'file', 'command')
    END;
END $$;

-- The leases are their holders' own.
ALTER TABLE presences ADD COLUMN role name NOT NULL DEFAULT session_user;

CREATE FUNCTION is_present(seen timestamptz, backend integer, lease interval, lost interval)
RETURNS boolean LANGUAGE sql STABLE AS $$
    -- After a restart of the server every lease is old: whoever lives has so long to renew it.
    SELECT greatest(seen, pg_postmaster_start_time()) > clock_timestamp() - lost
        OR (seen > clock_timestamp() - lease
            AND EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = backend))
$$;

CREATE FUNCTION renew_presence(id text, process bigint, machine text, since bigint, resume text)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = watchroom, pg_temp AS $$
    -- Nothing waits for the disk, in this transaction alone.
    SELECT set_config('synchronous_commit', 'off', true);
    INSERT INTO presences AS p VALUES
        (id, process, left(machine, 255), since, left(resume, 4096), pg_backend_pid(), clock_timestamp(),
            session_user)
        ON CONFLICT (id) DO UPDATE SET backend = excluded.backend, seen = excluded.seen
            WHERE p.role = session_user
$$;

CREATE FUNCTION release_presence(lease text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = watchroom, pg_temp AS $$
    DELETE FROM presences WHERE id = lease AND role = session_user
$$;

CREATE FUNCTION forget_presence(gone text, lease interval, lost interval) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = watchroom, pg_temp AS $$
    DELETE FROM presences AS p WHERE p.id = gone
        AND NOT is_present(p.seen, p.backend, greatest(lease, interval '12 s'), greatest(lost, interval '4 s'))
$$;

-- Tokens are for the owner alone. Large contents are never tokens.
ALTER TABLE rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON rows FOR SELECT USING (zone <> 'token');
ALTER TABLE heads ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON heads FOR SELECT USING (zone <> 'token');

-- Lets a login role be a member. Nothing but reading and the functions below is ever granted.
CREATE FUNCTION admit(login name, as_actor text, as_kind text) RETURNS void LANGUAGE plpgsql
SET search_path = watchroom, pg_temp AS $$
BEGIN
    INSERT INTO members VALUES (login, as_actor, as_kind)
        ON CONFLICT (role) DO UPDATE SET actor = excluded.actor, kind = excluded.kind;
    EXECUTE format('GRANT USAGE ON SCHEMA watchroom TO %I', login);
    EXECUTE format('GRANT SELECT ON rows, heads, contents, open_items, tip, presences, schema_version, members'
        ' TO %I', login);
    EXECUTE format('GRANT EXECUTE ON FUNCTION append, seq_at, clock_ns, problems, is_owner, is_present,'
        ' renew_presence, release_presence, forget_presence TO %I', login);
END $$;
