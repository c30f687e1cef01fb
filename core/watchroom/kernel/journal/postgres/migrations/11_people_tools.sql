-- The tools of people for routines and hand-overs: no agent's row that is carried out names one.

CREATE OR REPLACE FUNCTION is_decision_tool(tool text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN tool IN ('answer_request', 'add_person', 'revoke_person', 'sign_settings', 'set_budget', 'make_token',
        'revoke_token', 'resolve_conflict', 'dismiss_conflict', 'revert_outside_edit', 'revert_work', 'resume_agent',
        'cancel_agent', 'stop_agents', 'release_agents', 'end_task', 'mark_as_seen', 'grant_calls', 'revoke_grant',
        'add_routine', 'run_routine', 'stop_routine', 'hand_over_work');
