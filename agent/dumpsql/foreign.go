package dumpsql

import (
	"iter"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// Foreign judges the statements of a dump that somebody has sent. It lets through what pg_dump writes for one database without
// owners and privileges, by how a statement begins. That is not what keeps the server safe, which the privileges of the login do:
// code within a function can still be anything. It says early, and clearly, what would fail or come to nothing.
type Foreign struct {
	Owner     string                      // of what is restored
	Extension func(canonical string) bool // whether one may be made, by its name as Canonical has it
}

const (
	noOwners = "a dump that is uploaded must name no owners and no privileges; make it with pg_dump --no-owner --no-privileges"
	notOurs  = "pg_dump writes no such statement for one database without owners and privileges"
)

// headWords is how many words of a statement are looked at, unless its kind needs more.
const headWords = 12

// Refuse says why a statement must not be executed; empty: it may be.
func (f Foreign) Refuse(sql []byte) string {
	words := head(sql)
	if len(words) < 2 {
		return notOurs
	}
	switch words[0] {
	case "set":
		return refusedUnless(portableSettings[words[1]] && (at(words, 2) == "=" || at(words, 2) == "to"))
	case "select":
		if strings.HasPrefix(at(words, 3), "pg_restore_") || strings.HasPrefix(at(words, 5), "pg_restore_") {
			return "a dump that is uploaded has no statistics, which a newer pg_dump writes; make it with --no-statistics"
		}
		return refusedUnless(callsPortably(sql) || unlinksObject(sql))
	case "create":
		return f.create(sql, words[1:])
	case "alter":
		return alter(sql, words[1:])
	case "drop":
		return refusedUnless(isOneOf(words[1:], objects))
	case "comment":
		return refusedUnless(words[1] == "on" && isOneOf(words[2:], objects, commented))
	case "insert":
		return refusedUnless(words[1] == "into")
	case "refresh":
		return refusedUnless(words[1] == "materialized")
	case "begin", "commit":
		return refusedUnless(words[1] == ";")
	case "copy":
		return refusedUnless(copiesFromStdin(sql))
	case "grant", "revoke":
		return noOwners
	}
	return notOurs
}

func refusedUnless(allowed bool) string {
	if allowed {
		return ""
	}
	return notOurs
}

// Skip reports whether a statement is left out of a restore, and what is to be noted of that. It is about what the database has
// in any case, or is the server's: schema public, the language plpgsql, tablespaces.
func (f Foreign) Skip(sql []byte) (note string, skip bool) {
	words := head(sql)
	switch at(words, 0) + " " + at(words, 1) {
	case "create schema":
		return "", isName(at(withoutIfNotExists(words[2:]), 0), "public")
	case "drop schema", "drop extension":
		name := at(words, 2)
		if name == "if" {
			name = at(words, 4)
		}
		return "", isName(name, map[string]string{"schema": "public", "extension": "plpgsql"}[words[1]])
	case "comment on":
		return "", at(words, 2) == "extension" && isName(at(words, 3), "plpgsql")
	case "set default_tablespace":
		value := at(words, 3)
		return "the tablespace " + shown(value) + " was left out: the service has one for all", value != "''"
	}
	return "", false
}

func isName(word, name string) bool { return word != "" && Canonical(word) == name }

// Makes reports whether a statement makes or fills something, rather than preparing for that.
func Makes(sql []byte) bool {
	words := head(sql)
	switch at(words, 0) {
	case "set", "begin", "commit", "drop", ";":
		return false
	case "select":
		return at(words, 3) != "set_config"
	}
	return true
}

// head are the first words, keywords and plain names in lower case.
func head(sql []byte) (words []string) {
	for _, text := range Tokens(sql) {
		if words = append(words, folded(text)); len(words) == headWords {
			break
		}
	}
	return words
}

// folded is a keyword or plain name as the server sees it, which folds only ASCII. Literals and quoted names keep their quotes,
// so they are no keyword.
func folded(text string) string {
	if !identStart(text[0]) {
		return text
	}
	return ascii.Lower(text)
}

func at(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

// portableSettings are those that pg_dump sets in the session of a restore; which other versions than this server's do too.
var portableSettings = map[string]bool{
	"statement_timeout": true, "lock_timeout": true, "idle_in_transaction_session_timeout": true, "transaction_timeout": true,
	"client_encoding": true, "standard_conforming_strings": true, "check_function_bodies": true, "xmloption": true,
	"client_min_messages": true, "row_security": true, "default_tablespace": true, "default_table_access_method": true,
	"default_with_oids": true, "escape_string_warning": true, "search_path": true,
	"lc_monetary": true, // in the files of this service's own backups
}

// objects are the kinds of objects that a dump makes; more words of a kind follow the first.
var objects = [][]string{
	{"table"}, {"schema"}, {"sequence"}, {"index"}, {"view"}, {"materialized", "view"}, {"function"}, {"procedure"}, {"aggregate"},
	{"operator"}, {"type"}, {"domain"}, {"cast"}, {"conversion"}, {"collation"}, {"rule"}, {"trigger"}, {"policy"}, {"statistics"},
	{"text", "search", "configuration"}, {"text", "search", "dictionary"}, {"extension"}, {"publication"},
}

// commented can have a comment besides.
var commented = [][]string{{"column"}, {"constraint"}, {"large", "object"}}

// altered are the kinds that ALTER completes after they were made.
var altered = [][]string{
	{"table"}, {"sequence"}, {"index"}, {"view"}, {"materialized", "view"}, {"function"}, {"procedure"}, {"operator"}, {"type"},
	{"domain"}, {"trigger"}, {"statistics"}, {"publication"}, {"text", "search", "configuration"},
}

func isOneOf(words []string, kinds ...[][]string) bool {
	for _, kind := range slices.Concat(kinds...) {
		if len(words) > len(kind) && slices.Equal(words[:len(kind)], kind) {
			return true
		}
	}
	return false
}

// modifiers stand between CREATE and the kind of object.
var modifiers = []string{"or", "replace", "unlogged", "unique", "recursive", "constraint", "default"}

func (f Foreign) create(sql []byte, words []string) string {
	for len(words) > 0 && slices.Contains(modifiers, words[0]) {
		words = words[1:]
	}
	switch {
	case !isOneOf(words, objects):
		return notOurs
	case words[0] == "extension":
		return f.extension(sql)
	case words[0] == "policy":
		return f.policy(sql)
	case words[0] == "schema": // which could contain further statements
		rest := withoutIfNotExists(words[1:])
		return refusedUnless(len(rest) == 2 && rest[1] == ";")
	}
	return ""
}

func withoutIfNotExists(words []string) []string {
	if len(words) > 3 && slices.Equal(words[:3], []string{"if", "not", "exists"}) {
		return words[3:]
	}
	return words
}

// extension allows CREATE EXTENSION [IF NOT EXISTS] name [WITH] [SCHEMA name]: no other version, and nothing besides.
func (f Foreign) extension(sql []byte) string {
	words := head(sql)
	rest := withoutIfNotExists(words[2:])
	if len(words) == headWords || len(rest) < 2 {
		return notOurs
	}
	name := Canonical(rest[0])
	if rest = rest[1:]; rest[0] == "with" {
		rest = rest[1:]
	}
	if len(rest) == 3 && rest[0] == "schema" {
		rest = rest[2:]
	}
	switch {
	case len(rest) != 1 || rest[0] != ";":
		return notOurs
	case !f.Extension(name):
		return "the server has no trusted extension " + name + ", so it is not offered"
	}
	return ""
}

// policy refuses roles that are nobody's here: another customer's could not be removed for it.
func (f Foreign) policy(sql []byte) string {
	for role := range policyRoles(sql) {
		if folded(role) != "public" && Unquoted(folded(role)) != f.Owner {
			return "a policy for the role " + shown(role) + ", which this database does not have"
		}
	}
	return ""
}

// policyRoles yields the words of TO role, ...
func policyRoles(sql []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		listing, parens := false, 0
		for _, text := range Tokens(sql) {
			word := folded(text)
			switch {
			case word == "(":
				parens++
			case word == ")":
				parens--
			case parens > 0 || listing && word == ",":
			case listing && (word == "using" || word == "with" || word == ";"):
				return
			case !listing:
				listing = word == "to"
			case !yield(text):
				return
			}
		}
	}
}

// shown is a name from a dump in a message.
func shown(name string) string {
	const most = 63
	if len(name) > most {
		name = name[:most] + "..."
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(name), " "), "?")
}

func alter(sql []byte, words []string) string {
	if namesOwner(sql) || isOneOf(words, [][]string{{"default", "privileges"}}) {
		return noOwners
	}
	return refusedUnless(isOneOf(words, altered))
}

// namesOwner looks for OWNER TO, which ends its statement.
func namesOwner(sql []byte) bool {
	last, parens := "", 0
	for _, text := range Tokens(sql) {
		word := folded(text)
		switch word {
		case "(":
			parens++
		case ")":
			parens--
		case "to":
			if last == "owner" && parens == 0 {
				return true
			}
		}
		last = word
	}
	return false
}

// portableCalls are the functions that a dump calls: about its session, sequences and large objects.
var portableCalls = []string{"set_config", "setval", "lo_create", "lo_open", "lowrite", "lo_close"}

// callsPortably recognises SELECT pg_catalog.setval('public.s', 5, true); with nothing but literals.
func callsPortably(sql []byte) bool {
	words := head(sql)
	if len(words) < 6 || words[1] != "pg_catalog" || words[2] != "." || words[4] != "(" ||
		!slices.Contains(portableCalls, words[3]) {
		return false
	}
	if words[3] == "set_config" && !portableSettings[strings.Trim(words[5], "'")] {
		return false
	}
	n, last := 0, ""
	for _, text := range Tokens(sql) {
		if n++; n > 5 && !isLiteral(text) && !strings.Contains(",-);", text) || n > mostArguments {
			return false
		}
		last = text
	}
	return last == ";"
}

// unlinks is how pg_dump --clean removes a large object, with the number in between.
const unlinks = "select pg_catalog . lo_unlink ( oid ) from pg_catalog . pg_largeobject_metadata where oid = '"

func unlinksObject(sql []byte) bool {
	var words []string
	for _, text := range Tokens(sql) {
		if words = append(words, folded(text)); len(words) > mostArguments {
			return false
		}
	}
	number, ok := strings.CutPrefix(strings.Join(words, " "), unlinks)
	number, whole := strings.CutSuffix(number, "' ;")
	return ok && whole && strings.Trim(number, "0123456789") == ""
}

const mostArguments = 20

func isLiteral(text string) bool {
	c := text[0]
	word := folded(text)
	return c == '\'' || c >= '0' && c <= '9' || word == "true" || word == "false" || strings.HasPrefix(word, "e'")
}

// copiesFromStdin recognises COPY name [(columns)] FROM stdin, so that no other FROM of the statement is taken for that one.
func copiesFromStdin(sql []byte) bool {
	expect, parens := "copy", 0
	for _, text := range Tokens(sql) {
		word := folded(text)
		switch {
		case expect == "copy":
			expect = "name"
		case word == "(" && expect == "from":
			parens++
		case word == ")" && parens > 0:
			parens--
		case parens > 0:
		case expect == "name":
			if !identStart(text[0]) && text[0] != '"' {
				return false
			}
			expect = "from"
		case expect == "from" && word == ".":
			expect = "name"
		case expect == "from" && word == "from":
			expect = "stdin"
		default:
			return expect == "stdin" && word == "stdin"
		}
	}
	return false
}
