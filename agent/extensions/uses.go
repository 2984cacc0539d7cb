package extensions

import "github.com/pgherd/pgherd/core/extension"

// uses are those by which an extension is proved: columns, indexes, constraints, defaults and functions that need it.
var uses = map[extension.Name]use{
	extension.Citext: {
		fill: `CREATE TABLE people (id int PRIMARY KEY, name citext NOT NULL UNIQUE, role citext DEFAULT 'User' CHECK (role <> 'root'));
			CREATE INDEX people_hashed ON people USING hash (name);
			INSERT INTO people SELECT n, 'Name ' || n FROM generate_series(1, 500) n`,
		holds: []string{
			`SELECT count(*) = 1 FROM people WHERE name = 'NAME 42' AND role = 'USER'`,
			`SELECT max(name) = 'NAME 99' AND min(name) = 'name 1' FROM people`,
			`SELECT 'abc'::citext ~ 'B' AND strpos('abc'::citext, 'C'::citext) = 3 AND regexp_replace('aBc'::citext, 'b', 'x') = 'axc'`,
			`SELECT citext_hash_extended('A', 7) = citext_hash_extended('a', 7) AND 'a'::citext ~<~ 'B'::citext`,
		},
		search: `SELECT FROM people WHERE name > 'NAME 4' AND name < 'NAME 5'`, index: "people_name_key",
	},
	extension.PgTrgm: {
		fill: `CREATE TABLE words (id int PRIMARY KEY, word text NOT NULL);
			CREATE INDEX words_gin ON words USING gin (word gin_trgm_ops);
			CREATE INDEX words_gist ON words USING gist (word gist_trgm_ops (siglen = 32));
			INSERT INTO words SELECT n, 'word number ' || n FROM generate_series(1, 500) n`,
		holds: []string{
			`SELECT similarity('word', 'words') > 0.5 AND 'word' <% 'two words' AND 'word' <<% 'a word'`,
			`SELECT array_agg(id) = '{321}' FROM words WHERE word ILIKE '%NUMBER 321%'`,
			`SELECT id = 42 FROM words ORDER BY word <-> 'word number 42', id LIMIT 1`,
		},
		search: `SELECT FROM words WHERE word LIKE '%umber 32%'`, index: "words_gi",
	},
	extension.PgCrypto: {
		fill: `CREATE TABLE secrets (id int PRIMARY KEY, name text NOT NULL, sealed bytea,
				password text DEFAULT crypt('pw', gen_salt('bf', 4)), digest bytea GENERATED ALWAYS AS (digest(name, 'sha256')) STORED);
			CREATE INDEX secrets_digested ON secrets (digest(name, 'sha512'));
			INSERT INTO secrets (id, name, sealed)
				SELECT n, 'name ' || n, pgp_sym_encrypt('text ' || n, 'key') FROM generate_series(1, 50) n`,
		holds: []string{
			`SELECT bool_and(pgp_sym_decrypt(sealed, 'key') = 'text ' || id AND password = crypt('pw', password)) FROM secrets`,
			`SELECT bool_and(digest = digest(name, 'sha256') AND length(hmac(name, 'key', 'sha1')) = 20) FROM secrets`,
			`SELECT decrypt(encrypt('text', 'key', 'aes'), 'key', 'aes') = 'text' AND dearmor(armor('text')) = 'text'
				AND length(gen_random_bytes(16)) = 16`,
		},
		search: `SELECT FROM secrets WHERE digest(name, 'sha512') = digest('name 7', 'sha512')`, index: "secrets_digested",
	},
}
