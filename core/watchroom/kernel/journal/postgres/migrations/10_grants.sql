-- The zone `grant`: people's grants of calls, and their uses.
--
-- An agent's process takes a use as `system`, and answers its request with it. Each reader judges both rows again
-- (`watchroom.features.people.decisions`): they count only for a grant of a person that covers the call.

CREATE OR REPLACE FUNCTION is_zone(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN given IN ('private', 'handoff', 'collab', 'board', 'lease', 'config', 'workspace', 'session', 'request',
        'realtime', 'task', 'file', 'command', 'agent', 'buffer', 'token', 'revert', 'person', 'settings', 'tree',
        'repo', 'grant');

CREATE OR REPLACE FUNCTION is_decision_tool(tool text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN tool IN ('answer_request', 'add_person', 'revoke_person', 'sign_settings', 'set_budget', 'make_token',
        'revoke_token', 'resolve_conflict', 'dismiss_conflict', 'revert_outside_edit', 'revert_work', 'resume_agent',
        'cancel_agent', 'stop_agents', 'release_agents', 'end_task', 'mark_as_seen', 'grant_calls', 'revoke_grant');

ALTER FUNCTION is_decision_write(draft) RENAME TO is_decision_write_before_grants;
CREATE FUNCTION is_decision_write(draft draft) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE
        WHEN draft.zone = 'grant' THEN
            NOT (draft.tool = 'use_grant' AND draft.actor = 'system' AND draft.base > 0)
        WHEN draft.zone = 'request' AND draft.tool = 'answer_request' AND draft.actor = 'system' THEN
            NOT (draft.base > 0 AND coalesce(nullif(draft.detail, '')::jsonb ? 'grant', false))
        ELSE is_decision_write_before_grants(draft) END;
END $$;

ALTER FUNCTION may(members, boolean, text, text, text, text) RENAME TO may_before_grants;
CREATE FUNCTION may(member members, is_write boolean, actor text, tool text, zone text, path text)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path = watchroom, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    IF member.kind = 'agent' AND is_write AND actor = 'system' AND starts_with(path, member.actor || '/')
        AND ((zone = 'grant' AND tool = 'use_grant') OR (zone = 'request' AND tool = 'answer_request')) THEN
        RETURN true;
    END IF;
    RETURN may_before_grants(member, is_write, actor, tool, zone, path);
END $$;

REVOKE ALL ON FUNCTION is_decision_write, may FROM PUBLIC;
