package peer

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Followed is what a peer may follow: the changes that one publication has, out of one slot. The login is only for that, and this
// agent logs in as it: who comes from the peer has no password of this server.
type Followed struct{ Database, Login, Password, Slot, Publication string }

// A login of PostgreSQL that may replicate may take a copy of the whole server, and read or drop any slot. So what passes here is
// what a subscription of PostgreSQL 16 to 18 says that is made with create_slot and copy_data off, and nothing else.

// filter decides over what a peer says.
type filter struct {
	of      Followed
	started bool // changes were asked for: from now on there are answers to them
}

var (
	errStatement = errors.New("this connection is for the changes of one database: the statement is none of a subscription")
	errMessage   = errors.New("this connection is for the changes of one database: the message is none that a subscription sends")
	errStartUp   = errors.New("this connection is for the changes of one database: its start-up packet is none of a subscription")
)

// mostMessage is how long what a peer says may be, in bytes.
const mostMessage = 16 << 10

// The types of messages of a client that pass.
const (
	typeQuery     = 'Q'
	typeCopyData  = 'd'
	typeCopyDone  = 'c'
	typeTerminate = 'X'
)

// message decides over a message of a client, of which the body is without its length.
func (f *filter) message(kind byte, body []byte) error {
	switch kind {
	case typeTerminate:
		return nil
	case typeQuery:
		text, whole := strings.CutSuffix(string(body), "\x00")
		if !whole || strings.ContainsRune(text, 0) {
			return errMessage
		}
		return f.query(text)
	case typeCopyDone:
		if f.started {
			return nil
		}
	case typeCopyData: // how far it is
		if f.started && len(body) > 0 && (body[0] == 'r' || body[0] == 'h') {
			return nil
		}
	}
	return errMessage
}

// The statements that pass as they are, but for white space, with the name of the publication for %.
var passing = []string{
	// of every connection
	"SELECT pg_catalog.set_config('search_path', '', false);",
	"IDENTIFY_SYSTEM",
	// of CREATE SUBSCRIPTION and ALTER SUBSCRIPTION
	"SELECT t.pubname FROM pg_catalog.pg_publication t WHERE t.pubname IN ('%')",
	"SELECT DISTINCT n.nspname, c.relname, gpt.attrs FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
		"JOIN ( SELECT (pg_get_publication_tables(VARIADIC array_agg(pubname::text))).* FROM pg_publication " +
		"WHERE pubname IN ( '%' )) AS gpt ON gpt.relid = c.oid",
}

var (
	startPattern = regexp.MustCompile(
		`^START_REPLICATION SLOT "([a-z0-9_]{1,63})" LOGICAL [0-9A-F]{1,8}/[0-9A-F]{1,8} \(([^()]*)\)$`)
	optionPattern = regexp.MustCompile(
		`^(proto_version '[0-9]{1,3}'|streaming '(on|off|parallel)'|two_phase 'on'|origin '(any|none)'|binary 'true')$`)
)

// query decides over a statement.
func (f *filter) query(text string) error {
	words := strings.Join(strings.Fields(text), " ")
	for _, p := range passing {
		if words == strings.ReplaceAll(p, "%", f.of.Publication) {
			return nil
		}
	}
	start := startPattern.FindStringSubmatch(text)
	if start == nil || start[1] != f.of.Slot {
		return errStatement
	}
	named := 0
	for option := range strings.SplitSeq(start[2], ", ") {
		switch {
		case option == `publication_names '"`+f.of.Publication+`"'`:
			named++
		case !optionPattern.MatchString(option):
			return errStatement
		}
	}
	if named != 1 {
		return errStatement
	}
	f.started = true
	return nil
}

// optionsOfSubscription are the options of every connection of a subscription.
const optionsOfSubscription = "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3"

var (
	encodingPattern = regexp.MustCompile(`^[A-Za-z0-9_]{1,32}$`)
	namePattern     = regexp.MustCompile(`^[ -~]{0,63}$`)
)

// startUp decides over a start-up packet, and returns the parameters that pass.
func (f *filter) startUp(m *pgproto3.StartupMessage) (map[string]string, error) {
	passed := map[string]string{}
	for key, value := range m.Parameters {
		fits := false
		switch key {
		case "user": // who it is to the other side
			continue
		case "database":
			if value != f.of.Database {
				return nil, errStartUp
			}
			continue
		case "replication":
			fits = value == "database"
		case "options":
			value = strings.TrimSpace(value)
			fits = value == optionsOfSubscription
		case "client_encoding":
			fits = encodingPattern.MatchString(value)
		case "application_name", "fallback_application_name":
			fits = namePattern.MatchString(value)
		}
		if !fits {
			return nil, errStartUp
		}
		passed[key] = value
	}
	if m.Parameters["database"] == "" || passed["replication"] == "" {
		return nil, errStartUp
	}
	return passed, nil
}
