package backup_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What verification must find, and the words with which it names it.
func TestWhatDoesNotComeBackEqualIsNamed(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (id serial PRIMARY KEY, v text); INSERT INTO t (v) SELECT n FROM generate_series(1, 10) n;
		CREATE VIEW v AS SELECT * FROM t; SELECT lo_from_bytea(0, 'x')`)
	unverified := w.Request()
	unverified.Verify = false
	w.Backup(unverified)
	original := w.Text()
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"a row is missing": {"3\t3\n", "", []string{"rows public.t: expected 10, found 9"}},
		"a view is missing": {"CREATE VIEW public.v", "CREATE TEMPORARY VIEW v",
			[]string{"view public.v: expected columns (id, v), missing"}},
		"a sequence differs": {"setval('public.t_id_seq', 10", "setval('public.t_id_seq', 9",
			[]string{"sequence public.t_id_seq", "found last value 9"}},
		"a large object is missing": {"SELECT pg_catalog.lo_create", "SELECT pg_catalog.lo_creat(-1) FROM (SELECT 1 WHERE false) x; --",
			[]string{"SQLSTATE 42704"}},
		"a statement fails": {"CREATE VIEW public.v AS", "CREATE VIEW public.v AS SELECT no_such FROM t; --",
			[]string{"VIEW public.v", "CREATE VIEW public.v AS SELECT no_such", "SQLSTATE 42P01"}},
		"a row is no row":    {"3\t3\n", "3\n", []string{"TABLE DATA public.t", "COPY public.t", "SQLSTATE 22P04"}},
		"a constraint fails": {"3\t3\n", "4\t3\n", []string{"CONSTRAINT public.t t_pkey", "SQLSTATE 23505"}},
		"a superuser's act":  {"CREATE VIEW public.v AS", "ALTER SYSTEM SET work_mem = 1; --", []string{"SQLSTATE 42501"}},
		"a program":          {"CREATE VIEW public.v AS", "COPY t TO PROGRAM 'id'; --", []string{"only COPY ... FROM stdin"}},
		"data to the client": {"CREATE VIEW public.v AS", "COPY t TO STDOUT; --", []string{"only COPY ... FROM stdin"}},
		"another reading": {"CREATE VIEW public.v AS", "SET standard_conforming_strings = off; --",
			[]string{"standard_conforming_strings"}},
		"another encoding":    {"CREATE VIEW public.v AS", "SET client_encoding = 'SJIS'; --", []string{"client_encoding SJIS"}},
		"a command of psql":   {"CREATE VIEW public.v AS", "\\! id\n", []string{"backslash command"}},
		"the end is missing":  {"\\unrestrict", "-- ", []string{"do not match"}},
		"its own superuser":   {"CREATE VIEW public.v AS", "ALTER ROLE CURRENT_USER SUPERUSER; --", []string{"SQLSTATE 42501"}},
		"the agent's rights":  {"CREATE VIEW public.v AS", "SET ROLE pgherd_agent; --", []string{"SQLSTATE 42501"}},
		"the end of its copy": {"CREATE VIEW public.v AS", "DROP DATABASE postgres; --", []string{"SQLSTATE"}},
		"a server's file":     {"CREATE VIEW public.v AS", "SELECT pg_read_file('/etc/passwd'); --", []string{"SQLSTATE 42501"}},
		"a copy of no table":  {"COPY public.t", "COPY public.nothing", []string{"SQLSTATE 42P01"}},
		"two in the place of 1": {"CREATE VIEW public.v AS", "CREATE VIEW public.v AS SELECT 'a' AS b; DROP VIEW public.v; --",
			[]string{"view public.v: expected columns (id, v), missing"}},
	} {
		w.Replace(func(string) string {
			changed := strings.Replace(original, c.old, c.new, 1)
			if changed == original {
				t.Fatalf("%s: the dump does not hold %q", name, c.old)
			}
			return changed
		})
		result, err := w.Run(w.Agent, w.Request())
		if !fault.Has(err, fault.BackupNotVerified) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
		if result.VerifiedAt != nil || result.Manifest.File.SizeBytes == 0 {
			t.Errorf("%s: the result is %+v", name, result)
		}
		if left := w.Leftovers(); left != "" {
			t.Errorf("%s leaves %s", name, left)
		}
	}
}

// The files beside it are nothing that a restored copy could tell of. A damaged manifest does not even say whose backup it is.
func TestADamagedCompanionIsNamed(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	unverified := w.Request()
	unverified.Verify = false
	w.Backup(unverified)
	for _, c := range []struct{ ending, want string }{
		{".schema", "schema with owners and privileges is damaged"}, {".manifest", "not a backup manifest"},
	} {
		text := check.Must(os.ReadFile(w.Path(c.ending)))(t)
		text[len(text)/2] ^= 1
		check.NoError(t, os.WriteFile(w.Path(c.ending), text, 0o600))
		result, err := w.Run(w.Agent, w.Request())
		if err == nil || result.VerifiedAt != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, verified at %v", c.ending, err, result.VerifiedAt)
		}
	}
	if complete, err := w.Agent.Complete(t.Context(), w.Request()); complete || err != nil {
		t.Errorf("complete: %t, %v", complete, err)
	}
	if err := w.Agent.Discard(t.Context(), w.Request()); err != nil {
		t.Errorf("nobody gets rid of it: %v", err)
	}
	w.nothingLeft()
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	super := w.Cluster.URL("postgres")
	const name = "verify_22222222222242228222222222222222"
	clustertest.Exec(t, super, `CREATE ROLE `+name, `CREATE DATABASE `+name)
	t.Cleanup(func() { clustertest.Exec(t, super, `DROP DATABASE `+name, `DROP ROLE `+name) })
	w.Load(`CREATE TABLE t (a int)`)
	if err := w.Agent.Copies.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := w.Run(w.Agent, w.Request()); err == nil || fault.Has(err, fault.BackupNotVerified) {
		t.Errorf("a database that is not ours was taken: %v", err)
	}
	if left := w.Leftovers(); left != "1 databases, 1 roles, 0 rows of copies, 0 sessions" {
		t.Errorf("left: %q", left)
	}
}

// PostgreSQL 16 writes the unnamed argument of this body as an empty name, so no dump of it restores anywhere.
func TestAnObjectThatNoDumpRestoresIsNamed(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE FUNCTION half_named(int, b int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT $1 + b; END`)
	_, err := w.Run(w.Agent, w.Request())
	const want = "FUNCTION public.half_named(integer, integer)"
	if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "42601") {
		t.Errorf("%v", err)
	}
	if _, _, err := w.Files.Open(t.Context(), backuptest.DatabaseID, backuptest.Filename); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
}

// The login of a restore can do in the cluster what any stranger can: nothing.
func TestARestoreReachesNothingElse(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE secrets (a text)`)
	var rights string
	w.Agent.Crash = func(point string) {
		if point != "backup.verify.restored" {
			return
		}
		err := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t).QueryRow(`SELECT concat_ws(' ', rolsuper, rolcreatedb,
			rolcreaterole, rolreplication, (SELECT count(*) FROM pg_auth_members WHERE member = r.oid),
			has_database_privilege(r.oid, $1, 'CONNECT'), left(rolpassword, 14)) FROM pg_authid r
			WHERE r.rolname LIKE 'verify\_%'`, w.Name).Scan(&rights)
		if err != nil {
			t.Error(err)
		}
	}
	w.Backup(w.Request())
	if rights != "f f f f 0 f SCRAM-SHA-256$" {
		t.Errorf("its rights are %q", rights)
	}
}
