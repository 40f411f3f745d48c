-- Words of contexts are found with or without accents, as SQLite's index finds them.

{{postgres}}
ALTER TABLE contexts DROP COLUMN search;
ALTER TABLE contexts ADD COLUMN search tsvector GENERATED ALWAYS AS (
    to_tsvector('simple', regexp_replace(normalize(title || ' ' || content, NFKD), '[\u0300-\u036F]', '', 'g'))
) STORED;
CREATE INDEX contexts_text ON contexts USING GIN (search);
{{end}}
