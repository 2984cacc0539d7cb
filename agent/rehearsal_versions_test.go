//go:build versions

package agent_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// rehearsing is a database of one server that another one tries.
type rehearsing struct {
	from, to  *agenttest.Stack
	w         agenttest.Wanted
	operation string
	roles     []agenttest.LoginOf
}

const rehearsalToken = "tttttttttttttttttttttttttttttttttttttttt"

func (r *rehearsing) told(c command.Command) protocol.Command {
	return agenttest.Told(r.operation, 1, c)
}

// filed has the other server make the database, closed and empty, and a file made of it where it is.
func (r *rehearsing) filed(t *testing.T) {
	t.Helper()
	var closed command.EnsureDatabase
	check.NoError(t, json.Unmarshal(r.w.Create().Payload, &closed))
	closed.Closed, closed.BackupKey = true, agenttest.BackupKey
	r.to.Done(t, r.told(closed))
	for _, l := range r.roles {
		r.to.Done(t, r.told(command.PrepareRole{
			DatabaseID: r.w.DatabaseID(), Username: l.Username, Generation: 1, AccessProfile: l.Profile, ConnectionLimit: l.Limit,
		}))
	}
	r.from.Done(t, r.told(command.AdmitPeer{
		DatabaseID: r.w.DatabaseID(), TokenSHA256: command.HashToken(rehearsalToken), Generation: 1,
	}))
	file := command.Backup{DatabaseID: r.w.DatabaseID(), Filename: backup.Filename(passingName), Passing: true}
	if got := r.from.BackedUp(t, r.told(file)); got.State != command.BackupDone {
		t.Fatalf("%+v", got)
	}
}

func (r *rehearsing) breaks(t *testing.T) []rehearsal.Break {
	t.Helper()
	return r.tries(t).Breaks
}

// tries rehearses, and demands that nothing is left of it.
func (r *rehearsing) tries(t *testing.T) command.LoadReport {
	t.Helper()
	r.filed(t)
	report := r.to.Loaded(t, r.told(command.Load{
		DatabaseID: r.w.DatabaseID(), Compare: true, Rehearsal: true, Moving: true, Source: command.Source{
			DatabaseID: r.w.DatabaseID(), Filename: backup.Filename(passingName), Passing: true, AtPeer: true,
		},
		Peer: command.Peer{URL: "https://" + r.from.Config.Listen, CA: r.from.CA(t), Token: rehearsalToken},
	}))
	if report.State != command.LoadReady {
		t.Fatalf("%+v", report)
	}
	r.to.RefusedFor(t, command.ReasonNotFound, r.told(command.Switch{DatabaseID: r.w.DatabaseID(), Moving: true}))
	for _, s := range []*agenttest.Stack{r.to, r.from} {
		s.Done(t, agenttest.Closing(r.operation))
		s.NoOrphans(t)
		if left := filesOf(t, s, r.w); len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
	}
	r.to.NoTrace(t, r.w)
	return report
}

// newer are a server of the oldest version, and one of a newer.
func newer(t *testing.T, test func(t *testing.T, from, to *agenttest.Stack)) {
	for _, part := range []toolchain.Part{toolchain.Server17, toolchain.Server18} {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			from := agenttest.Logical(t)
			to := agenttest.LogicalOn(t, check.Must(toolchain.FindFetched(part))(t))
			test(t, from.Start(t), to.Start(t))
		})
	}
}

// Whatever logins of a customer can make is the same at a newer server: nothing breaks.
func TestRehearsalOfEverything(t *testing.T) {
	newer(t, func(t *testing.T, from, to *agenttest.Stack) {
		w := from.Made(t, database.Managed)
		first, second := from.Opened(t, w.Additional(1, role.Custom)), from.Opened(t, w.Additional(2, role.ReadWrite))
		n := w.Names()
		text := "SET SESSION AUTHORIZATION \"" + n.Owner + "\";\n" +
			string(check.Must(os.ReadFile("testdata/roundtrip/everything.sql"))(t))
		psql(t, from, from.PG.URL(w.Name), text, "-o", os.DevNull, "-v", "database="+w.Name, "-v", "owner="+w.Name,
			"-v", "runtime="+n.Runtime, "-v", "readonly="+n.Readonly, "-v", "first="+first.Username, "-v", "second="+second.Username)
		r := &rehearsing{from: from, to: to, w: w, operation: agenttest.NewUUID(), roles: []agenttest.LoginOf{first, second}}
		for _, b := range r.breaks(t) {
			t.Errorf("%+v", b)
		}
	})
}

// On the way back, what the older server does not know is left out where that can be, and told; the rest is a break.
func TestRehearsalOfTheWayBack(t *testing.T) {
	newer(t, func(t *testing.T, older, from *agenttest.Stack) {
		w := from.Made(t, database.Managed)
		n, is18 := w.Names(), from.One(t, "SELECT current_setting('server_version_num')::int >= 180000") == "true"
		owner := from.Owner(t, w)
		check.Must(owner.Exec(`CREATE TABLE parent (id int PRIMARY KEY, a int);
			CREATE TABLE heir (extra int, PRIMARY KEY (id)) INHERITS (parent);
			CREATE TABLE stricter () INHERITS (parent);
			ALTER TABLE stricter ALTER a SET NOT NULL;
			INSERT INTO heir VALUES (1, NULL, 2);
			GRANT ALL ON parent TO "` + n.Runtime + `";
			ALTER DEFAULT PRIVILEGES GRANT MAINTAIN ON TABLES TO "` + n.Runtime + `";
			ALTER ROLE CURRENT_USER IN DATABASE "` + w.Name + `" SET transaction_timeout = '1h'`))(t)
		want := []string{
			"the privilege MAINTAIN: left out, as PostgreSQL 16 has none",
			"the setting transaction_timeout of " + n.Owner + " was left out: PostgreSQL 16 does not know it",
		}
		breaks := "CREATE VIEW of_later AS SELECT JSON_VALUE('{}'::jsonb, '$.a') AS a"
		if is18 {
			check.Must(owner.Exec(`ALTER DEFAULT PRIVILEGES GRANT SELECT ON LARGE OBJECTS TO "` + n.Runtime + `"`))(t)
			want = append(want, "default privileges of large objects: left out, as PostgreSQL 16 has none")
			breaks = "CREATE TABLE later (a int); ALTER TABLE later ADD CONSTRAINT of_later NOT NULL a NOT VALID"
		}
		r := &rehearsing{from: from, to: older, w: w, operation: agenttest.NewUUID()}
		report := r.tries(t)
		slices.Sort(report.Notes)
		if slices.Sort(want); len(report.Breaks) > 0 || !slices.Equal(report.Notes, want) {
			t.Errorf("it breaks %+v, and leaves out %q, want %q", report.Breaks, report.Notes, want)
		}
		check.Must(owner.Exec(breaks))(t)
		r.operation = agenttest.NewUUID()
		if found := r.breaks(t); len(found) != 1 || !strings.Contains(found[0].What, "of_later") {
			t.Errorf("of what the older one cannot keep: %+v", found)
		}
	})
}

// What does not work at a newer server is told, all of it that can be known at once.
func TestRehearsalOfWhatBreaks(t *testing.T) {
	newer(t, func(t *testing.T, from, to *agenttest.Stack) {
		w := from.Made(t, database.Managed)
		check.Must(from.Owner(t, w).Exec(`CREATE FUNCTION json_value(text) RETURNS int LANGUAGE sql AS 'SELECT 1';
			CREATE VIEW written AS SELECT buffers_backend FROM pg_stat_bgwriter`))(t)
		check.Must(from.SuperIn(t, w).Exec(`CREATE EXTENSION adminpack`))(t)
		r := &rehearsing{from: from, to: to, w: w, operation: agenttest.NewUUID()}
		found := map[rehearsal.Kind]string{}
		for _, b := range r.breaks(t) {
			found[b.Kind] += b.String() + "\n"
		}
		for kind, want := range map[rehearsal.Kind]string{
			rehearsal.Extension: "extension adminpack: the server does not have it\n",
			rehearsal.Word:      "word function public.json_value(text): PostgreSQL ",
			rehearsal.Statement: "adminpack",
		} {
			if !strings.Contains(found[kind], want) {
				t.Errorf("%s: %q, want %q", kind, found[kind], want)
			}
		}
		check.Must(from.SuperIn(t, w).Exec(`DROP EXTENSION adminpack`))(t)
		r.operation = agenttest.NewUUID()
		if list := r.breaks(t); len(list) != 2 || !strings.Contains(list[1].What, "buffers_backend") {
			t.Errorf("without the extension: %+v", list)
		}
	})
}

// The words that the core knows are those that the servers know.
func TestWordsOfNewerVersions(t *testing.T) {
	newer(t, func(t *testing.T, from, to *agenttest.Stack) {
		const words = `SELECT coalesce(string_agg(word, ' ' ORDER BY word COLLATE "C"), '') FROM pg_get_keywords()
			WHERE catcode IN ('C', 'R')`
		before := strings.Fields(from.One(t, words))
		var more []string
		for _, word := range strings.Fields(to.One(t, words)) {
			known := false
			for _, b := range before {
				known = known || b == word
			}
			if !known {
				more = append(more, word)
			}
		}
		version := check.Must(strconv.Atoi(to.One(t, "SELECT current_setting('server_version_num')::int / 10000")))(t)
		if want := rehearsal.Restricted(16, version); !slices.Equal(more, want) {
			t.Errorf("PostgreSQL %d has %v, the core %v", version, more, want)
		}
	})
}
