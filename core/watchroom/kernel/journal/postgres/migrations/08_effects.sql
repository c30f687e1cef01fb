-- What an agent's login may change: protected state is changed by people, and a row is judged by its effect.
--
-- `may_change` is the part of `watchroom.rules.effects` that is about agents: what its rows would change, whatever
-- tool and actor they name. `watchroom.rules.decisions` judges each row again when it is read, by signatures too.
-- tests/people/test_effects_on_a_server.py and test_planted_on_a_server.py compare the two.

-- The tools of people: no agent's row that is carried out names one, in any zone.
CREATE FUNCTION is_decision_tool(tool text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN tool IN ('answer_request', 'add_person', 'revoke_person', 'sign_settings', 'set_budget', 'make_token',
        'revoke_token', 'resolve_conflict', 'dismiss_conflict', 'revert_outside_edit', 'revert_work', 'resume_agent',
        'cancel_agent', 'stop_agents', 'release_agents', 'end_task', 'mark_as_seen');

-- Whether a note would do what only people do. Only Watchroom pauses an agent in the zone `agent`.
CREATE FUNCTION is_decision_note(draft draft) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN draft.outcome = 'ok' AND (
        is_decision_tool(draft.tool)
        OR (draft.zone = 'session' AND draft.tool IN ('pause_agent', 'send_message'))
        OR (draft.zone = 'agent' AND draft.tool = 'pause_agent' AND draft.actor <> 'system')
        OR draft.actor LIKE 'human:%');

-- Whether a write would do what only people do.
CREATE FUNCTION is_decision_write(draft draft) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN is_decision_tool(draft.tool) OR CASE
        WHEN draft.zone IN ('person', 'settings', 'token', 'revert', 'task', 'config', 'workspace') THEN true
        WHEN draft.zone IN ('collab', 'board') THEN
            draft.actor = 'outside' OR coalesce(nullif(draft.detail, '')::jsonb ? 'resolves', false)
        WHEN draft.zone = 'request' AND draft.tool = 'ask_person' THEN
            draft.base <> 0 OR NOT starts_with(draft.path, draft.actor || '/')
        WHEN draft.zone = 'request' THEN
            NOT (draft.tool = 'withdraw_request' AND draft.actor = 'system' AND draft.base > 0)
        ELSE false END;
END $$;

-- Whether the budget with this key holds for an agent: its own, that of a session of it, of its task, or the team's.
CREATE FUNCTION is_budget_of(agent text, key text) RETURNS boolean LANGUAGE sql STABLE
    RETURN starts_with(key, 'team ') OR starts_with(key, 'agent ' || agent || ' ')
        OR starts_with(key, 'session ' || agent || '/')
        OR (starts_with(key, 'task ') AND EXISTS (
            SELECT FROM heads JOIN rows ON rows.seq = heads.seq
            WHERE heads.zone = 'agent' AND heads.path = agent
                AND starts_with(key, 'task ' || nullif(nullif(rows.detail, '')::json ->> 'task', '') || ' ')));

-- Whether the lease with this id has run out, by the terms of `watchroom.journal.postgres.presence`.
CREATE FUNCTION is_lost_lease(lease text) RETURNS boolean LANGUAGE sql STABLE
    RETURN EXISTS (SELECT FROM presences AS p
        WHERE p.id = lease AND NOT is_present(p.seen, p.backend, interval '12 s', interval '4 s'));

-- Whether a row of `system` or `outside` is one that an agent's own process makes. An idempotency key names the
-- tool and the path: nobody takes the key of a row that another process is going to make.
CREATE FUNCTION is_own_report(member members, draft draft) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE
        WHEN draft.actor = 'outside' THEN draft.tool IN ('outside_edit', 'overwritten_edit') AND draft.key = ''
        WHEN draft.tool = 'process_lost' THEN
            draft.zone = 'workspace' AND draft.outcome = 'failed' AND draft.key IN ('', 'lost/' || draft.path)
            AND is_lost_lease(draft.path)
        WHEN draft.tool IN ('budget_warning', 'budget_reached') THEN
            draft.zone = 'workspace' AND draft.outcome = 'ok' AND is_budget_of(member.actor, draft.path)
            AND (draft.key = '' OR (draft.tool = 'budget_warning'
                AND starts_with(draft.key, 'budget_warning ' || draft.path || ' ')))
        WHEN draft.tool = 'pause_agent' THEN
            draft.outcome = 'ok' AND (draft.key = '' OR starts_with(draft.key, 'breaker ' || draft.path || ' '))
        ELSE draft.key = '' END;
END $$;

-- Whether a member's row leaves alone what only people change. Supervisors and the owner may change it. Raises
-- insufficient_privilege for a row in the name of `system` or `outside` that no agent's process makes.
CREATE FUNCTION may_change(member members, draft draft) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF member.kind IS DISTINCT FROM 'agent' THEN
        RETURN true;
    END IF;
    IF draft.actor IN ('system', 'outside') AND NOT is_own_report(member, draft) THEN
        RAISE EXCEPTION '% cannot write % of % as %', member.actor, draft.tool, draft.zone, draft.actor
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NOT CASE WHEN draft.w THEN is_decision_write(draft) ELSE is_decision_note(draft) END;
END $$;

REVOKE ALL ON FUNCTION is_decision_tool, is_decision_note, is_decision_write, is_budget_of, is_lost_lease,
    is_own_report, may_change FROM PUBLIC;
