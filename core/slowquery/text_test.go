package slowquery

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// texts are what is shown of statements; nothing where they are hidden.
var texts = map[string]string{
	"SELECT * FROM t WHERE a = $1 AND b IN ($2,$12)":                 "SELECT * FROM t WHERE a = $1 AND b IN ($2,$12)",
	"select 'a', E'b\\'c', U&'d', B'1', x'F', N'e', $$f$$, $t$g$t$":  "select ?, ?, ?, ?, ?, ?, ?, ?",
	"select 'it''s', '', 'a'\n'b', e'\\\\', '\\x'":                   "select ?, ?, ? ?, ?, ?",
	"SELECT 1, -2.5, .5, 1e-10, 0xFF, 1_000, 1.":                     "SELECT ?, -?, ?, ?, ?, ?, ?",
	`SELECT t1.c2, a$1, x[1:2], "A ""1"" 'b'", tab$le$ FROM é1`:      `SELECT t1.c2, a$1, x[?:?], "A ""1"" 'b'", tab$le$ FROM é1`,
	"SELECT $1::jsonb ? $2, a->>$3, a @> $4, 5%2, a<-1, $5$t$x$t$":   "SELECT $1::jsonb ? $2, a->>$3, a @> $4, ?%?, a<-?, $5?",
	"-- a 'note'\n/* by /* x */ */ SELECT/*1*/a\t, --\n\r\n  b -- c": "SELECT a , b",
	"((SELECT 1)) UNION TABLE t":                                     "((SELECT ?)) UNION TABLE t",
	"SELECT U&\"d\\0061t\", u & 'x', eq'x'":                          "SELECT U&\"d\\0061t\", u & ?, eq?",
	"SELECT \"a\x01\x1b[31mb\u202e\", c\x07d FROM \u00a0":            "SELECT \"a\ufffd\ufffd[31mb\ufffd\", c d FROM \ufffd",
	"SELECT a\xff\xfeb": "SELECT a\ufffdb",

	// Where a constant ends is not known, or it does not end.
	"SELECT 'a\\', 'secret'":                  "SELECT ?…",
	"SELECT 'it\\'s secret'":                  "SELECT ?…",
	"SELECT 'a' || U&'\\' || 'secret'":        "SELECT ? || ?…",
	"SELECT a, 'secret":                       "SELECT a, ?…",
	"SELECT E'secret\\'":                      "SELECT ?…",
	"SELECT $a$ secret $b$":                   "SELECT ?…",
	"SELECT a /* secret":                      "SELECT a",
	"SELECT \"a":                              "SELECT \"a",
	"SELECT $, $a":                            "SELECT $, $a",
	"INSERT INTO t VALUES ('a', 7)":           "INSERT INTO t VALUES (?, ?)",
	"with x as (select 1) update t set a = 1": "with x as (select ?) update t set a = ?",

	// Utility statements, of which those are shown that take long and hold no secret but in constants.
	"COPY t (a) FROM STDIN WITH (DELIMITER ',')":                "COPY t (a) FROM STDIN WITH (DELIMITER ?)",
	"COPY t TO PROGRAM 'curl secret'":                           "COPY t TO PROGRAM ?",
	"create UNIQUE index concurrently i on t (a)":               "create UNIQUE index concurrently i on t (a)",
	"CREATE TEMP TABLE t AS SELECT 'x' AS a":                    "CREATE TEMP TABLE t AS SELECT ? AS a",
	"alter table t add column a text default 'secret'":          "alter table t add column a text default ?",
	"EXPLAIN (ANALYZE) SELECT 1":                                "EXPLAIN (ANALYZE) SELECT ?",
	"REFRESH MATERIALIZED VIEW v":                               "REFRESH MATERIALIZED VIEW v",
	"CALL p('secret')":                                          "CALL p(?)",
	"COMMIT":                                                    "COMMIT",
	"ALTER ROLE a PASSWORD 'secret'":                            "",
	"ALTER USER a PASSWORD 'secret'":                            "",
	"alter/**/role a password 'secret'":                         "",
	"CREATE ROLE a PASSWORD 'secret'":                           "",
	"CREATE USER MAPPING FOR a SERVER s OPTIONS (password 'x')": "",
	"ALTER USER MAPPING FOR a SERVER s OPTIONS (password 'x')":  "",
	"CREATE SERVER s FOREIGN DATA WRAPPER f OPTIONS (host 'x')": "",
	"CREATE FOREIGN TABLE t () SERVER s OPTIONS (token 'x')":    "",
	"ALTER FOREIGN TABLE t OPTIONS (SET token 'x')":             "",
	"CREATE SUBSCRIPTION s CONNECTION 'password=x'":             "",
	"SET app.key = 'secret'":                                    "",
	"SET app.key TO secret":                                     "",
	"DO $$ BEGIN PERFORM 'secret'; END $$":                      "",
	"CREATE FUNCTION f() RETURNS text RETURN secret":            "",
	"PREPARE p AS SELECT 1":                                     "",
	"NOTIFY c, 'secret'":                                        "",
	"COMMENT ON TABLE t IS 'secret'":                            "",
	"DISCARD ALL":                                               "",
	"'x' SELECT 1":                                              "",
	"\"select\" 1":                                              "",
	"SELECTED 1":                                                "",
	"create \"x\" table":                                        "",
	"create":                                                    "",
	"-- only a comment":                                         "",
	"/* SELECT":                                                 "",
	"":                                                          "",
}

func TestTexts(t *testing.T) {
	for kept, want := range texts {
		if text, ok := Text(kept); text != want || ok != (want != "") {
			t.Errorf("%q:\n got %q, %v\nwant %q", kept, text, ok, want)
		}
	}
}

func TestTextsAreBounded(t *testing.T) {
	for kept, want := range map[string]string{
		"SELECT " + strings.Repeat("ä", MostShown-7):                   "SELECT " + strings.Repeat("ä", MostShown-7),
		"SELECT " + strings.Repeat("ä", MostShown-6):                   "SELECT " + strings.Repeat("ä", MostShown-7) + cut,
		"SELECT '" + strings.Repeat("x", MostRead-9) + "'":             "SELECT ?",
		"SELECT '" + strings.Repeat("x", MostRead-8) + "'":             "SELECT ?" + cut,
		"SELECT 1 /*" + strings.Repeat("x", MostRead) + "*/ + 1":       "SELECT ?" + cut,
		"/*" + strings.Repeat("x", MostRead) + "*/ SELECT 1":           "",
		"SELECT " + strings.Repeat("'ä', ", MostShown) + "'secret' AS": "SELECT " + strings.Repeat("?, ", 664) + "?" + cut,
	} {
		if text, ok := Text(kept); text != want || ok != (want != "") {
			t.Errorf("%.60q:\n got %.60q, %d characters\nwant %.60q, %d characters", kept, text, utf8.RuneCountInString(text), want,
				utf8.RuneCountInString(want))
		}
	}
}

// Nothing is shown of a constant or a comment, in whatever order they come, and wherever the text is cut.
func TestNoConstantIsShown(t *testing.T) {
	const secret = "Geheimnis"
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"'Geheimnis'", "'a''Geheimnis'", `'\'Geheimnis'`, `'Geheimnis\'`, `E'\'Geheimnis\\'`, "U&'Geheimnis'", "N'Geheimnis'",
			"$$Geheimnis$$", "$a$ '$$Geheimnis$a$", "-- Geheimnis\n", "/* /* ' */ Geheimnis */", ",", "(", ")", "$1", "$12", "a",
			"e", "u", `"x'$$--"`, "1", "5.e+3", "||", "-", "/", "*", "::", "\n", "é",
		}), 0, 40).Draw(t, "pieces")
		kept := "SELECT " + strings.Join(pieces, " ")
		kept = kept[:rapid.IntRange(0, len(kept)).Draw(t, "length")]
		if text, _ := Text(kept); strings.Contains(text, secret) {
			t.Fatalf("%q is shown as %q", kept, text)
		}
	})
}

// Of a statement, what is shown is a short text that a screen can show, and is the same when it is read again.
func FuzzText(f *testing.F) {
	for kept := range texts {
		f.Add(kept)
	}
	f.Fuzz(func(t *testing.T, kept string) {
		text, ok := Text(kept)
		if !ok && text != "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > MostShown+1 {
			t.Fatalf("%q is %q, %v", kept, text, ok)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q is %q", kept, text)
		}
		if again, still := Text(text); ok && (again != text || !still) {
			t.Fatalf("%q is %q, and that %q", kept, text, again)
		}
	})
}
