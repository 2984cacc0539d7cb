package peer

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

var followed = Followed{Database: "orders", Login: "move_1", Password: "pw", Slot: "move_1", Publication: "move_1"}

const (
	startHead = `START_REPLICATION SLOT "move_1" LOGICAL 0/1A2B3C (`
	named     = `publication_names '"move_1"'`
	// As CREATE SUBSCRIPTION asks for them: PostgreSQL 16, 17 and 18 have the same.
	listTables = "SELECT DISTINCT n.nspname, c.relname, gpt.attrs\n       FROM pg_class c\n" +
		"         JOIN pg_namespace n ON n.oid = c.relnamespace\n" +
		"         JOIN ( SELECT (pg_get_publication_tables(VARIADIC array_agg(pubname::text))).*\n" +
		"                FROM pg_publication\n                WHERE pubname IN ( 'move_1' )) AS gpt\n" +
		"             ON gpt.relid = c.oid\n"
	listPublications = "SELECT t.pubname FROM\n pg_catalog.pg_publication t WHERE\n t.pubname IN ('move_1')"
)

// passes are the statements of subscriptions.
var passes = []string{
	"IDENTIFY_SYSTEM", "SELECT pg_catalog.set_config('search_path', '', false);", listTables, listPublications,
	startHead + "proto_version '4', streaming 'parallel', origin 'any', " + named + ")", // of 16 and later
	startHead + "proto_version '3', two_phase 'on', origin 'none', " + named + ", binary 'true')",
	startHead + "proto_version '1', " + named + ")",
}

// refusedQueries are others.
var refusedQueries = []string{
	"", "BASE_BACKUP", "BASE_BACKUP (LABEL 'x', MANIFEST 'yes')", "base_backup", "IDENTIFY_SYSTEM; BASE_BACKUP",
	"READ_REPLICATION_SLOT move_1",
	"TIMELINE_HISTORY 1", `CREATE_REPLICATION_SLOT "x" LOGICAL pgoutput`, `CREATE_REPLICATION_SLOT "x" PHYSICAL`,
	`DROP_REPLICATION_SLOT "move_1"`, `DROP_REPLICATION_SLOT other WAIT`, `ALTER_REPLICATION_SLOT "move_1" ( FAILOVER true )`,
	`START_REPLICATION 0/0`, `START_REPLICATION SLOT "move_1" PHYSICAL 0/0`, `START_REPLICATION SLOT "move_1" 0/0 TIMELINE 1`,
	strings.Replace(passes[6], `"move_1"`, `"move_2"`, 1), strings.Replace(passes[6], `SLOT "move_1"`, `SLOT move_1`, 1),
	startHead + "proto_version '1')", startHead + "proto_version '1', publication_names '\"move_2\"')",
	startHead + "proto_version '1', publication_names '\"move_1\",\"move_2\"')", startHead + named + ", " + named + ")",
	startHead + named + ", messages 'true')", startHead + named + ") ; BASE_BACKUP", startHead + named + ");SELECT 1",
	startHead + named + ",  proto_version '1')", passes[6] + ";", " " + passes[6], "/* */" + passes[6], strings.ToLower(passes[6]),
	"SHOW data_directory", "SELECT 1", "COPY orders TO STDOUT", "COPY (SELECT 1) TO PROGRAM 'id'", "BEGIN", "SET search_path = x",
	"SELECT pg_drop_replication_slot('other')", "SELECT * FROM pg_logical_slot_peek_changes('other', NULL, NULL)",
	strings.Replace(listTables, "move_1", "move_2", 1), strings.Replace(listTables, "'move_1'", "'move_1', 'other'", 1),
	listTables + "; SELECT 1", strings.Replace(listPublications, "'move_1'", "'') OR ('' = ''", 1),
	"SELECT pg_catalog.set_config('search_path', 'public', false);",
	"SELECT pg_catalog.set_config('search_path', '', false); SELECT 1",
}

func TestStatementsThatPass(t *testing.T) {
	for _, text := range passes {
		f := &filter{of: followed}
		if err := f.message(typeQuery, []byte(text+"\x00")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if begins := strings.HasPrefix(text, "START"); f.started != begins {
			t.Errorf("%s: started is %t", text, f.started)
		}
	}
	for _, text := range refusedQueries {
		f := &filter{of: followed}
		if err := f.message(typeQuery, []byte(text+"\x00")); err == nil || f.started {
			t.Errorf("%s passes", text)
		}
	}
}

func TestMessagesThatPass(t *testing.T) {
	status, start := append([]byte("r"), make([]byte, 33)...), []byte(passes[6]+"\x00")
	for what, c := range map[string]struct {
		started, passes bool
		kind            byte
		body            []byte
	}{
		"status":                {true, true, 'd', status},
		"feedback":              {true, true, 'd', append([]byte("h"), make([]byte, 24)...)},
		"end of changes":        {true, true, 'c', nil},
		"end":                   {false, true, 'X', nil},
		"status before changes": {false, false, 'd', status},
		"end before changes":    {false, false, 'c', nil},
		"data":                  {true, false, 'd', []byte("x")},
		"no data":               {true, false, 'd', nil},
		"failure":               {true, false, 'f', []byte("x\x00")},
		"statement to parse":    {false, false, 'P', append([]byte("\x00"), append(start, 0, 0)...)},
		"call":                  {false, false, 'F', make([]byte, 8)},
		"password":              {false, false, 'p', []byte("x\x00")},
		"statement without end": {false, false, 'Q', []byte("IDENTIFY_SYSTEM")},
		"two in one":            {false, false, 'Q', []byte("IDENTIFY_SYSTEM\x00BASE_BACKUP\x00")},
	} {
		f := &filter{of: followed, started: c.started}
		if err := f.message(c.kind, c.body); (err == nil) != c.passes {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestStartUpPacketsThatPass(t *testing.T) {
	base := map[string]string{
		"user": "anybody", "database": "orders", "replication": "database", "options": " " + optionsOfSubscription,
		"client_encoding": "UTF8", "application_name": "move_1",
	}
	passed, err := (&filter{of: followed}).startUp(&pgproto3.StartupMessage{Parameters: base})
	if err != nil || len(passed) != 4 || passed["user"] != "" || passed["options"] != optionsOfSubscription {
		t.Errorf("%v, %v", passed, err)
	}
	for key, values := range map[string][]string{
		"database": {"other", "", "postgres"}, "replication": {"true", "on", "", "1"},
		"options":               {optionsOfSubscription + " -c role=postgres", "-c session_preload_libraries=x", "--search_path=x"},
		"client_encoding":       {"UTF8'", ""},
		"application_name":      {strings.Repeat("x", 64), "a\nb"},
		"search_path":           {"public"},
		"_pq_.something":        {"1"},
		"session_authorization": {"postgres"},
	} {
		for _, value := range values {
			m := &pgproto3.StartupMessage{Parameters: map[string]string{}}
			for k, v := range base {
				m.Parameters[k] = v
			}
			m.Parameters[key] = value
			if passed, err := (&filter{of: followed}).startUp(m); err == nil {
				t.Errorf("%s=%q passes: %v", key, value, passed)
			}
		}
	}
}

// Whatever a peer says, what passes is a statement of a subscription, and one only.
func FuzzStatements(f *testing.F) {
	for _, text := range append(append([]string{}, passes...), refusedQueries...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter := &filter{of: followed}
		if filter.query(text) != nil {
			if filter.started {
				t.Error("a refused statement begins")
			}
			return
		}
		upper := strings.ToUpper(text)
		for _, word := range []string{"BASE_BACKUP", "CREATE", "DROP", "ALTER", "COPY", "PHYSICAL", "TIMELINE", "PG_READ", "--", "/*"} {
			if strings.Contains(upper, word) {
				t.Errorf("%q passes", text)
			}
		}
		if before, _, more := strings.Cut(text, ";"); more && !strings.HasSuffix(strings.TrimSpace(text), ";") {
			t.Errorf("%q passes, after %q", text, before)
		}
		if filter.started != strings.HasPrefix(text, startHead[:len(`START_REPLICATION SLOT "move_1" LOGICAL `)]) {
			t.Errorf("%q: started is %t", text, filter.started)
		}
	})
}

// Whatever comes in the place of a start-up packet or a message, reading it ends, and takes no more than the bound.
func FuzzStartUp(f *testing.F) {
	valid, err := (&pgproto3.StartupMessage{
		ProtocolVersion: version3, Parameters: map[string]string{"user": "u", "database": "orders", "replication": "database"},
	}).Encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte{0, 0, 0, 8, 4, 210, 22, 47})
	f.Add(append([]byte{0, 0, 0, 8, 4, 210, 22, 47}, valid...))
	f.Add([]byte{0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 2})
	f.Add([]byte{255, 255, 255, 255, 0, 3, 0, 0})
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 9, 0, 3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, text []byte) {
		var said strings.Builder
		m, err := readStartUp(&said, strings.NewReader(string(text)))
		if err == nil {
			passed, err := (&filter{of: followed}).startUp(m)
			if err == nil && (passed["replication"] != "database" || m.Parameters["database"] != "orders") {
				t.Errorf("%v passes", m.Parameters)
			}
		}
		if said.Len() > 3 {
			t.Errorf("it was told %q", said.String())
		}
		_, body, err := readMessage(strings.NewReader(string(text)))
		if err == nil && len(body) > mostMessage {
			t.Errorf("%d bytes are one message", len(body))
		}
	})
}
