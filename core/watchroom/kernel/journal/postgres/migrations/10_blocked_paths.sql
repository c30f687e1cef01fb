-- A row refused with path_blocked keeps the draft's detail, so that it is found by the id of its call.
DO $migration$
DECLARE
    old_text constant text := $old$                    WHEN row_error = 'path_blocked' AND extra <> '' THEN
                        '{' || extra || CASE WHEN draft.key = '' THEN ''
                            ELSE ', "idempotency_key": ' || to_json(draft.key) END || '}'
$old$;
    definition text;
    changed integer := 0;
BEGIN
    FOR definition IN
        SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE n.nspname = 'watchroom' AND p.prokind = 'f' AND strpos(p.prosrc, old_text) > 0
    LOOP
        EXECUTE replace(definition, old_text, '');
        changed := changed + 1;
    END LOOP;
    IF changed <> 1 THEN
        RAISE EXCEPTION 'the function that appends rows was found % times', changed;
    END IF;
END
$migration$;
