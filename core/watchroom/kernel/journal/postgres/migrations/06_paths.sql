-- Which paths may become files: the rules of `watchroom.rules.row_files`, decided where all clients meet.
--
-- `find_flaw` there and `path_flaw` here say the same of every path, which `tests/laws/test_path_rules.py` tries.

-- The rule that an agent's id breaks, NULL if it breaks none.
CREATE FUNCTION agent_flaw(id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN id COLLATE "C" !~ '^[a-z0-9][a-z0-9_-]{0,63}$' THEN 'id_characters'
        WHEN strpos(id, '_to_') > 0 THEN 'id_separator'
        WHEN id IN ('outside', 'system', 'human', 'user') OR id ~ '^(con|prn|aux|nul|(com|lpt)[1-9])$' THEN 'reserved'
    END;

-- The rule that a relative path breaks, NULL if it breaks none: `find_path_flaw`.
CREATE FUNCTION relative_path_flaw(path text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    hidden CONSTANT text := '[\u00AD\u0600-\u0605\u061C\u06DD\u070F\u0890-\u0891\u08E2\u180E\u200B-\u200F'
        '\u2028-\u202E\u2060-\u2064\u2066-\u206F\uE000-\uF8FF\uFDD0-\uFDEF\uFEFF\uFFF9-\uFFFB'
        '\uFFFE-\uFFFF\U000110BD\U000110CD\U00013430-\U00013438\U0001BCA0-\U0001BCA3'
        '\U0001D173-\U0001D17A\U000E0001\U000E0020-\U000E007F\U000F0000-\U0010FFFF]';
    look_alikes CONSTANT text := '[\u2024-\u2026\u2044\u2100-\u2101\u2105-\u2106\u2215-\u2216\u2488-\u249B\u2571-\u2572'
        '\u27CB\u27CD\u29F5\u29F8-\u29F9\u33C2\u33C7\u33D8\uFE19\uFE30\uFE52\uFE68\uFF0E-\uFF0F'
        '\uFF3C\U0001F100]';
    part text;
    folded text;
BEGIN
    IF path = '' THEN RETURN 'empty'; END IF;
    IF path ~ '[\u0001-\u001F\u007F-\u009F]' THEN RETURN 'control_character'; END IF;
    IF path ~ hidden THEN RETURN 'hidden_character'; END IF;
    IF path ~ look_alikes THEN RETURN 'look_alike'; END IF;
    IF path IS NOT NFC NORMALIZED THEN RETURN 'not_nfc'; END IF;
    IF starts_with(path, '/') THEN RETURN 'absolute'; END IF;
    IF strpos(path, E'\\') > 0 THEN RETURN 'backslash'; END IF;
    IF path ~ '^[A-Za-z]:' THEN RETURN 'drive'; END IF;
    IF strpos(path, ':') > 0 THEN RETURN 'colon'; END IF;
    IF octet_length(path) > 1000 THEN RETURN 'path_length'; END IF;
    FOREACH part IN ARRAY string_to_array(path, '/') LOOP
        IF part = '' THEN RETURN 'empty_part'; END IF;
        IF part IN ('.', '..') THEN RETURN 'dot_part'; END IF;
        folded := lower(normalize(part, NFKC) COLLATE "C");
        IF folded IN ('.watchroom', '.versions', '.crdt_state', '.locks', '.git')
            OR rtrim(split_part(folded, '.', 1), U&' \1680') ~ '^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9])$' THEN
            RETURN 'reserved';
        END IF;
        IF part ~ '^[ \u00A0\u1680\u2000-\u200A\u202F\u205F\u3000]'
            OR part ~ '[ \u00A0\u1680\u2000-\u200A\u202F\u205F\u3000.]$' THEN
            RETURN 'part_edges';
        END IF;
        IF octet_length(part) > 200 THEN RETURN 'part_length'; END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- The rule that the path of a file in a task's folder breaks, NULL if it breaks none.
CREATE FUNCTION task_file_flaw(path text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    task text := watchroom.part_before(path, '/');
    name text := substr(path, length(task) + 2);
    part text;
    number integer := 0;
BEGIN
    IF strpos(path, '/') = 0 OR name = '' THEN RETURN 'no_owner'; END IF;
    IF task COLLATE "C" !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' THEN RETURN 'session_characters'; END IF;
    IF octet_length(name) > 4096 THEN RETURN 'path_length'; END IF;
    FOREACH part IN ARRAY string_to_array(name, '/') LOOP
        number := number + 1;
        IF part = '' THEN RETURN 'empty_part'; END IF;
        IF part IN ('.', '..') THEN RETURN 'dot_part'; END IF;
        IF lower(part COLLATE "C") = '.git' OR (number = 1 AND part = '.watchroom') THEN RETURN 'reserved'; END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- The rule that a path breaks in its zone, NULL if it breaks none or the zone has no files: `find_flaw`.
CREATE FUNCTION path_flaw(zone text, path text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    pair text := CASE WHEN strpos(path, '/') > 0 THEN watchroom.part_before(path, '/') ELSE path END;
    name text := substr(path, length(pair) + 2);
    sender text := CASE WHEN strpos(pair, '_to_') > 0 THEN watchroom.part_before(pair, '_to_') ELSE pair END;
    receiver text := substr(pair, length(sender) + 5);
BEGIN
    CASE zone
        WHEN 'collab' THEN
            RETURN watchroom.relative_path_flaw(path);
        WHEN 'private' THEN
            IF name = '' THEN RETURN 'no_owner'; END IF;
            RETURN coalesce(watchroom.agent_flaw(pair), watchroom.relative_path_flaw(name));
        WHEN 'handoff' THEN
            IF '' IN (name, sender, receiver) THEN RETURN 'no_owner'; END IF;
            RETURN coalesce(watchroom.agent_flaw(sender), watchroom.agent_flaw(receiver), watchroom.relative_path_flaw(name),
                CASE WHEN lower(normalize(name, NFKC) COLLATE "C") ~ '\.meta\.json(/|$)' THEN 'meta_suffix' END);
        WHEN 'board', 'lease' THEN
            IF path IN ('global', 'top-layer') OR (path ~ '^(mid|bottom)-layer-'
                AND watchroom.agent_flaw(regexp_replace(path, '^(mid|bottom)-layer-', '')) IS NULL) THEN
                RETURN NULL;
            END IF;
            RETURN 'board_name';
        WHEN 'config' THEN
            RETURN CASE WHEN path <> 'config.toml' THEN 'config_path' END;
        WHEN 'realtime' THEN
            RETURN CASE WHEN strpos(path, '/') > 0 THEN 'document_folder' ELSE watchroom.relative_path_flaw(path) END;
        WHEN 'task' THEN
            RETURN CASE WHEN path COLLATE "C" !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' THEN 'session_characters' END;
        WHEN 'file' THEN
            RETURN watchroom.task_file_flaw(path);
        ELSE
            RETURN NULL;
    END CASE;
END $$;

-- The owner may: it brings whole journals here, in which such rows are shown and make no files.
CREATE FUNCTION check_path() RETURNS trigger LANGUAGE plpgsql SET search_path = watchroom, pg_temp AS $$
DECLARE
    flaw text := path_flaw(NEW.zone, NEW.path);
BEGIN
    IF flaw IS NOT NULL AND NOT is_owner() THEN
        RAISE EXCEPTION 'no path of zone %: % (rule %)', NEW.zone, quote_literal(left(NEW.path, 120)), flaw
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER rows_are_checked BEFORE INSERT ON rows
    FOR EACH ROW WHEN (NEW.version IS NOT NULL) EXECUTE FUNCTION check_path();

REVOKE ALL ON FUNCTION agent_flaw, relative_path_flaw, task_file_flaw, path_flaw, check_path FROM PUBLIC;
