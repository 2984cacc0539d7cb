package backup_test

import (
	"github.com/pgherd/pgherd/acceptance/backuptest"

	"strings"
	"testing"

	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// doctor changes the text of the sidecar, and the manifest so that it names the changed one.
func (w *world) doctor(change func(schema string) string) {
	w.T.Helper()
	w.Rewrite(func(_ *core.Manifest, _, sidecar []byte) (data, newSidecar []byte) {
		return nil, backuptest.Packed(change(backuptest.Unpacked(w.T, sidecar)))
	})
}

// A sidecar from which the day of need would bring back something else, or nothing, is no verified backup's.
func TestASidecarThatDoesNotComeBackIsNamed(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int); GRANT SELECT ON t TO "shop reader"; SELECT lo_from_bytea(4711, 'x')`)
	unverified := w.Request()
	unverified.Verify = false
	w.Backup(unverified)
	schema := ""
	w.doctor(func(now string) string { schema = now; return now })
	const differs, impossible = "the restored database is not what was backed up", "owners and privileges of the backup cannot be"
	for name, c := range map[string]struct{ more, want string }{
		"of another database":   {`COMMENT ON TABLE public.t IS 'another';`, differs},
		"of what is not there":  {`GRANT SELECT ON TABLE public.nothing TO shop;`, impossible},
		"with what is no grant": {`GRANT SELECT TO shop;`, impossible},
		"not changed":           {"", ""},
	} {
		w.doctor(func(string) string { return schema + "\n" + c.more + "\n" })
		result, err := w.Run(w.Agent, w.Request())
		switch {
		case c.want == "" && (err != nil || result.VerifiedAt == nil):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", name, err)
		}
		if left := w.Leftovers(); left != "" {
			t.Errorf("%s leaves %s", name, left)
		}
	}
}

// party has made, been granted, and is named by something of each kind.
const party = `
	CREATE TABLE t (n int); CREATE SCHEMA theirs AUTHORIZATION party; CREATE TABLE mine (n int); ALTER TABLE mine OWNER TO party;
	GRANT SELECT ON t TO party WITH GRANT OPTION; GRANT UPDATE (n) ON t TO party;
	CREATE POLICY alone ON t TO party USING (n > 1); CREATE POLICY two ON t TO party, shop USING (n > 2);
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO party;
	SELECT lo_from_bytea(4711, 'x'), lo_from_bytea(4712, 'y'); GRANT SELECT ON LARGE OBJECT 4711 TO party;
	ALTER LARGE OBJECT 4712 OWNER TO party;`

// withParty is a world with a role "party" beside its owner, and what that has.
func withParty(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.super(`SET ROLE pgherd_agent; CREATE ROLE party; RESET ROLE; GRANT party TO shop`)
	t.Cleanup(func() { w.super(`DROP ROLE IF EXISTS party, latecomer`) }) // the databases of tests outlive them
	t.Cleanup(w.bury)
	w.Load(`GRANT CREATE ON SCHEMA public TO party; ` + party)
	return w
}

func (w *world) super(statements ...string) {
	w.T.Helper()
	clustertest.Exec(w.T, w.Cluster.URL("postgres"), statements...)
}

// bury takes from party what it has in the database.
func (w *world) bury() {
	w.T.Helper()
	clustertest.Exec(w.T, w.URL, `DO $$ BEGIN
		IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'party') THEN
			REASSIGN OWNED BY party TO shop; DROP OWNED BY party;
		END IF; END $$`)
}

// What becomes of roles while a file waits to be verified, or is, says nothing about the file.
func TestRolesThatChangeCondemnNoFile(t *testing.T) {
	const renamed = `ALTER ROLE party RENAME TO pgh_dead_0123456789abcdef0123456789abcdef`
	for name, c := range map[string]struct {
		at   string
		do   func(w *world)
		open bool // this attempt finds nothing out
	}{
		"it is removed before": {"backup.after-commit", func(w *world) { w.bury(); w.super(`DROP ROLE party`) }, false},
		"another one is made": {"backup.verify.granted", func(w *world) {
			w.super(`CREATE ROLE latecomer; ALTER ROLE shop SET work_mem = '9MB'; ALTER ROLE party VALID UNTIL '2001-01-01'`)
		}, false},
		"it is retired before":    {"backup.verify.shut", func(w *world) { w.super(renamed) }, false},
		"it is retired meanwhile": {"backup.verify.granted", func(w *world) { w.super(renamed) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := withParty(t)
			w.Agent.Crash = func(point string) {
				if point == c.at {
					w.Agent.Crash = func(string) {}
					c.do(w)
				}
			}
			t.Cleanup(func() {
				w.super(`DO $$ BEGIN ALTER ROLE pgh_dead_0123456789abcdef0123456789abcdef RENAME TO party;
					EXCEPTION WHEN undefined_object THEN NULL; END $$`)
			})
			result, err := w.Run(w.Agent, w.Request())
			if c.open {
				if err == nil || fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "roles were removed") {
					t.Errorf("the attempt: %v", err)
				}
				result, err = w.Run(w.Agent, w.Request())
			}
			if err != nil || result.VerifiedAt == nil {
				t.Errorf("%+v, %v", result.VerifiedAt, err)
			}
			w.LeavesNothing()
		})
	}
}

// What is verified has the owners and privileges of the roles of now, as what a restore makes has.
func TestAVerificationGivesEverythingToWhomItBelongs(t *testing.T) {
	w := withParty(t)
	var found string
	w.Agent.Crash = func(point string) {
		if point != "backup.verify.granted" {
			return
		}
		const access = `SELECT concat_ws('; ',
			(SELECT string_agg(concat_ws(' ', relname, relowner::regrole, relacl), ', ' ORDER BY relname) FROM pg_class
				WHERE relnamespace = 'public'::regnamespace),
			(SELECT string_agg(polname || ' ' || (SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles
				WHERE oid = ANY (polroles)), ', ' ORDER BY polname) FROM pg_policy),
			(SELECT defaclacl::text FROM pg_default_acl), (SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'theirs'),
			(SELECT string_agg(concat_ws(' ', lomowner::regrole, lomacl), ', ' ORDER BY oid) FROM pg_largeobject_metadata))`
		// The agent may end its own sessions.
		copied := w.Cluster.URLFor("pgherd_agent", backuptest.Password, "verify_"+id.Compact(backuptest.OperationID))
		if err := (clustertest.Database{URL: copied}).Open(t).QueryRow(access).Scan(&found); err != nil {
			t.Error(err)
		}
	}
	w.Backup(w.Request())
	const want = `mine party, t shop {shop=arwdDxt/shop,party=r*/shop}; alone party, two party shop; ` +
		`{shop=arwdDxt/shop,party=r/shop}; party; shop {shop=rw/shop,party=r/shop}, party`
	if found != want {
		t.Errorf("the copy had\n%s\nwant\n%s", found, want)
	}
}
