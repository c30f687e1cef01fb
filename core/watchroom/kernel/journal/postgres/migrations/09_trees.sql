-- The zones of a git repository's working trees: `tree` and `repo`.

CREATE OR REPLACE FUNCTION is_zone(given text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN given IN ('private', 'handoff', 'collab', 'board', 'lease', 'config', 'workspace', 'session', 'request',
        'realtime', 'task', 'file', 'command', 'agent', 'buffer', 'token', 'revert', 'person', 'settings', 'tree',
        'repo');

-- Everything else is decided as before, for a zone whose paths have the same form.
ALTER FUNCTION is_place(text, text) RENAME TO is_place_before_trees;
CREATE FUNCTION is_place(zone text, path text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN is_place_before_trees(CASE zone WHEN 'tree' THEN 'task' WHEN 'repo' THEN 'file' ELSE zone END, path);

ALTER FUNCTION path_flaw(text, text) RENAME TO path_flaw_before_trees;
CREATE FUNCTION path_flaw(zone text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN watchroom.path_flaw_before_trees(
        CASE zone WHEN 'tree' THEN 'task' WHEN 'repo' THEN 'file' ELSE zone END, path);

-- Files of trees are on disk before their rows, so nothing can be in their way.
DO $$
BEGIN
    EXECUTE replace(pg_get_functiondef('append(uuid, jsonb, bytea[])'::regprocedure),
        'draft.zone <> ''file''', 'draft.zone NOT IN (''file'', ''repo'')');
END $$;

REVOKE ALL ON FUNCTION is_place, path_flaw FROM PUBLIC;
