-- What an agent's login may change: protected state is changed by people, and a row is judged by its effect.
--
-- `may_change` is the part of `watchroom.rules.effects` that is about agents: what its rows would change, whatever
-- tool and actor they name. `watchroom.rules.decisions` judges each row again when it is read, by signatures too.
-- tests/people/test_effects_on_a_server.py compares the two.

-- Whether a note of a member's own process would do what only people do.
CREATE FUNCTION is_decision_note(draft draft) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN draft.outcome = 'ok' AND (
        draft.tool IN ('mark_as_seen', 'resume_agent', 'cancel_agent', 'dismiss_conflict', 'resolve_conflict',
            'revert_outside_edit', 'stop_agents', 'release_agents', 'set_budget', 'answer_request', 'end_task')
        OR (draft.zone = 'session' AND draft.tool IN ('pause_agent', 'send_message'))
        OR draft.actor LIKE 'human:%');

-- Whether a write would do what only people do.
CREATE FUNCTION is_decision_write(draft draft) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE
        WHEN draft.zone IN ('person', 'settings', 'token', 'revert', 'task', 'config', 'workspace') THEN true
        WHEN draft.zone IN ('collab', 'board') THEN
            draft.actor = 'outside' OR (strpos(draft.detail, '"resolves"') > 0 AND draft.detail::jsonb ? 'resolves')
        WHEN draft.zone = 'request' AND draft.tool = 'ask_person' THEN
            draft.base <> 0 OR NOT starts_with(draft.path, draft.actor || '/')
        WHEN draft.zone = 'request' THEN
            NOT (draft.tool = 'withdraw_request' AND draft.actor = 'system' AND draft.base > 0)
        ELSE false END;
END $$;

-- Whether a member's row leaves alone what only people change. Supervisors and the owner may change it.
CREATE FUNCTION may_change(member members, draft draft) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF member.kind IS DISTINCT FROM 'agent' THEN
        RETURN true;
    END IF;
    RETURN NOT CASE WHEN draft.w THEN is_decision_write(draft) ELSE is_decision_note(draft) END;
END $$;

REVOKE ALL ON FUNCTION is_decision_note, is_decision_write, may_change FROM PUBLIC;
