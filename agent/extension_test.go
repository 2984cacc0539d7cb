package agent_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// supported are the versions of PostgreSQL 16.
var supported = map[extension.Name]string{extension.Citext: "1.6", extension.PgTrgm: "1.6", extension.PgCrypto: "1.3"}

// uses is what each extension is used for, in a table that it is not yet used in, and what must come of it.
var uses = map[extension.Name]string{
	extension.Citext: `CREATE TABLE names (name citext PRIMARY KEY); INSERT INTO names VALUES ('Ada');
		SELECT name = 'ADA' FROM names`,
	extension.PgTrgm: `CREATE TABLE words (word text); CREATE INDEX ON words USING gist (word gist_trgm_ops);
		SELECT 'word' <% 'two words'`,
	extension.PgCrypto: `SELECT crypt('secret', gen_salt('bf', 4)) LIKE '$2a$%'
		AND pgp_sym_decrypt(pgp_sym_encrypt('x', 'k'), 'k') = 'x'`,
}

func (w wanted) change(kind extension.Change, name extension.Name) protocol.Command {
	return told(newUUID(), 1, command.ChangeExtension{
		DatabaseID: w.databaseID(), Extension: name, Change: kind, Version: supported[name],
	})
}

// changedBy sends the command again and again until the change is over.
func (s *stack) changedBy(t testing.TB, c protocol.Command) (report command.ExtensionReport) {
	t.Helper()
	check.Eventually(t, "the change does not end", func() bool {
		report = command.ExtensionReport{}
		check.NoError(t, json.Unmarshal(s.done(t, c), &report))
		return report.State != command.ExtensionRunning
	})
	return report
}

// wantChanged demands that an extension is changed, stands and works.
func (s *stack) wantChanged(t testing.TB, w wanted, c protocol.Command, name extension.Name) {
	t.Helper()
	want := command.ExtensionReport{
		State: command.ExtensionDone, Stage: "done", Changed: true, InstalledVersion: supported[name], Schema: "public",
	}
	if got := s.changedBy(t, c); got != want {
		t.Fatalf("%+v", got)
	}
	s.wantInUse(t, w, name)
}

func (s *stack) wantInUse(t testing.TB, w wanted, name extension.Name) {
	t.Helper()
	if e := s.extensionOf(t, w, name); e.InstalledVersion != supported[name] || e.Schema != "public" {
		t.Errorf("%+v", e)
	}
	owner := s.owner(t, w)
	setup, query := usesOf(name)
	check.Must(owner.Exec(setup))(t)
	var works bool
	if check.NoError(t, owner.QueryRow(query).Scan(&works)); !works {
		t.Errorf("%s is not what it should be", query)
	}
}

// usesOf are the statements that need an extension, and the query that is true then.
func usesOf(name extension.Name) (setup, query string) {
	at := strings.LastIndex(uses[name], ";") + 1
	return uses[name][:at], uses[name][at:]
}

// wantUnchanged demands that a change fails, and that the message says why.
func (s *stack) wantUnchanged(t testing.TB, c protocol.Command, why string) {
	t.Helper()
	got := s.changedBy(t, c)
	if got.State != command.ExtensionFailed || got.Changed || !strings.Contains(got.Message, why) {
		t.Errorf("%+v, want a failure for %q", got, why)
	}
}

func (s *stack) extensionOf(t testing.TB, w wanted, name extension.Name) command.ExtensionEntry {
	t.Helper()
	for _, e := range s.extensions(t, w).Entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not in the catalog", name)
	return command.ExtensionEntry{}
}

func (s *stack) extensions(t testing.TB, w wanted) (list command.ExtensionList) {
	t.Helper()
	status, text, err := s.request(http.MethodGet, "/v1/databases/"+w.id+"/extensions", nil)
	check.NoError(t, err)
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	check.NoError(t, json.Unmarshal(text, &list))
	return list
}

// superIn opens the database as the superuser.
func (s *stack) superIn(t testing.TB, w wanted) *sql.DB { return open(t, s.pg.URL(w.name)) }

// noChangeLogins checks that no login of a change is left.
func (s *stack) noChangeLogins(t testing.TB) {
	t.Helper()
	check.Eventually(t, "a login of a change is left", func() bool {
		return s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'ext\\_%'") == "0"
	})
}

func TestExtensionsAreInstalledAsTheOwner(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	list := s.extensions(t, w)
	for i, e := range list.Entries {
		want := command.ExtensionEntry{
			Name: extension.Names[i], Available: true, Trusted: true, DefaultVersion: supported[extension.Names[i]],
		}
		if e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	if list.ServerVersion != s.one(t, "SHOW server_version") || len(list.Entries) != 3 {
		t.Errorf("%+v", list)
	}
	for _, name := range extension.Names {
		s.wantChanged(t, w, w.change(extension.Install, name), name)
		s.wantUnchanged(t, w.change(extension.Install, name), "installed already")
		s.wantUnchanged(t, w.change(extension.Upgrade, name), "already")
	}
	const owners = `SELECT string_agg(DISTINCT r.rolname, ' ') FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner
		WHERE extname = ANY ('{citext,pg_trgm,pgcrypto}')`
	var owner string
	check.NoError(t, s.superIn(t, w).QueryRow(owners).Scan(&owner))
	if owner != w.name {
		t.Errorf("the extensions belong to %s", owner)
	}
	s.noChangeLogins(t)
	s.worksElsewhere(t, w)
}

// worksElsewhere makes a backup, downloads it, restores it in a cluster that knows nothing of this one, and uses the extensions.
func (s *stack) worksElsewhere(t *testing.T, w wanted) {
	t.Helper()
	s.wantBackup(t, w.backup(newUUID(), backupName, true), command.BackupDone, "")
	status, file, err := s.request(http.MethodGet, backupPath(w, backupName), nil)
	if err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	elsewhere := clustertest.New(t, nil)
	psql := exec.Command(check.Must(toolchain.Find())(t).Psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", elsewhere.URL("postgres"))
	psql.Stdin = check.Must(gzip.NewReader(bytes.NewReader(file)))(t)
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	restored := open(t, elsewhere.URL("postgres"))
	for _, name := range extension.Names {
		_, query := usesOf(name)
		var works bool
		if check.NoError(t, restored.QueryRow(query).Scan(&works)); !works {
			t.Errorf("elsewhere %s is not what it should be", query)
		}
	}
}

// Nobody has these versions from this service, but a database that was restored from elsewhere may. pgcrypto 1.3 differs from 1.2
// in markings only.
func TestExtensionsAreUpgraded(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	owner := s.owner(t, w)
	s.wantUnchanged(t, w.change(extension.Upgrade, extension.PgTrgm), "not installed")
	check.Must(owner.Exec(`CREATE EXTENSION pg_trgm VERSION '1.3'; CREATE EXTENSION citext VERSION '1.4'; CREATE EXTENSION pgcrypto;
		CREATE SCHEMA aside`))(t)
	check.Must(s.superIn(t, w).Exec(`UPDATE pg_extension SET extversion = '1.2' WHERE extname = 'pgcrypto'`))(t)
	check.Must(s.superIn(t, w).Exec(`ALTER EXTENSION citext SET SCHEMA aside`))(t)
	s.wantUnchanged(t, w.change(extension.Upgrade, extension.Citext), `in the schema "aside"`)
	check.Must(s.superIn(t, w).Exec(`ALTER EXTENSION citext SET SCHEMA public`))(t)
	for _, name := range extension.Names {
		s.wantChanged(t, w, w.change(extension.Upgrade, name), name)
	}
	s.noChangeLogins(t)
}

// What the owner has set for their login, or the service for the database, does not reach the session of a change.
func TestSettingsAreNotThoseOfACustomer(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	owner := s.owner(t, w)
	check.Must(owner.Exec(`CREATE SCHEMA mine; ALTER ROLE CURRENT_USER SET search_path = mine;
		ALTER ROLE CURRENT_USER SET role = none; ALTER ROLE CURRENT_USER SET statement_timeout = 1;
		ALTER ROLE CURRENT_USER SET lock_timeout = 1; ALTER ROLE CURRENT_USER SET local_preload_libraries = 'none_of_that_name'`))(t)
	super := s.superIn(t, w)
	for _, set := range []string{
		"default_transaction_read_only = on", "statement_timeout = 1", "lock_timeout = 1", "search_path = mine",
		"idle_in_transaction_session_timeout = 1", "synchronous_commit = off",
	} {
		check.Must(super.Exec(fmt.Sprintf("ALTER DATABASE %q SET %s", w.name, set)))(t)
	}
	c := w.change(extension.Install, extension.PgTrgm)
	if got := s.changedBy(t, c); got.State != command.ExtensionDone || got.Schema != "public" {
		t.Errorf("%+v", got)
	}
}

// obstacles are what an owner can put into the way of an install, and what is said of it.
var obstacles = map[string]struct {
	sql  string
	name extension.Name
	why  string
}{
	"a type of that name":       {`CREATE TYPE citext AS (a int)`, extension.Citext, `type "citext" already exists`},
	"a domain of that name":     {`CREATE DOMAIN citext AS text`, extension.Citext, `type "citext" already exists`},
	"a shell type of that name": {`CREATE TYPE citext`, extension.Citext, `type "citext" already exists`},
	"a function of that signature": {
		`CREATE FUNCTION show_limit() RETURNS real RETURN 1`, extension.PgTrgm, `"show_limit" already exists`,
	},
	"an operator class": {
		`CREATE OPERATOR CLASS citext_ops FOR TYPE int4 USING hash AS OPERATOR 1 =, FUNCTION 1 hashint4(int4)`,
		extension.Citext, `operator class "citext_ops" for access method "hash" already exists`,
	},
	"no schema":           {`DROP SCHEMA public`, extension.PgTrgm, "has no schema public"},
	"no right":            {`REVOKE CREATE ON SCHEMA public FROM CURRENT_USER`, extension.PgTrgm, "may not create objects"},
	"it stands elsewhere": {`CREATE SCHEMA mine; CREATE EXTENSION pg_trgm SCHEMA mine`, extension.PgTrgm, `in the schema "mine"`},
	"a schema of another's": {
		`ALTER SCHEMA public OWNER TO pg_database_owner`, extension.PgTrgm, "may not create objects",
	},
}

func TestWhatStandsInTheWayOfAnExtension(t *testing.T) {
	s := realStack(t)
	for what, o := range obstacles {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := s.made(t, database.Managed)
			_, err := s.owner(t, w).Exec(o.sql)
			if sqlState(err) == "42501" { // operator classes are a superuser's; but it must not matter who has made it
				_, err = s.superIn(t, w).Exec(o.sql)
			}
			check.NoError(t, err)
			s.wantUnchanged(t, w.change(extension.Install, o.name), o.why)
		})
	}
}

// Everything in public whose name and arguments fit better than those of pg_catalog stands there as a trap: each notes who runs
// it. The scripts of the extensions run none of them.
func TestScriptsOfExtensionsRunNothingOfACustomers(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	owner := s.owner(t, w)
	check.Must(owner.Exec(`CREATE TABLE public.caught (who text, session text, what text);
		GRANT ALL ON public.caught TO PUBLIC;
		CREATE FUNCTION public.trap(what text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.caught VALUES (current_user, session_user, what); RETURN what; END $$;
		CREATE FUNCTION public.catch(a text, b text) RETURNS text LANGUAGE sql AS $$ SELECT public.trap('||') $$;
		CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = public.catch);
		CREATE FUNCTION public.cast_int(a text) RETURNS int LANGUAGE sql AS $$ SELECT length(public.trap('cast')) $$;
		CREATE FUNCTION public.set_config(a text, b text, c bool) RETURNS text LANGUAGE sql AS $$ SELECT public.trap('set_config') $$;
		CREATE FUNCTION public.current_setting(a text) RETURNS text LANGUAGE sql AS $$ SELECT public.trap('current_setting') $$;
		CREATE FUNCTION public.quote_ident(a text) RETURNS text LANGUAGE sql AS $$ SELECT public.trap('quote_ident') $$;
		CREATE FUNCTION public.lower(a text) RETURNS text LANGUAGE sql AS $$ SELECT public.trap('lower') $$;
		CREATE TABLE public.pg_extension (extname name, extversion text, extnamespace oid);
		INSERT INTO public.pg_extension VALUES ('citext', '9.9', 11);
		CREATE VIEW public.pg_available_extensions AS SELECT public.trap('view') AS name;
		CREATE FUNCTION public.int4(a text) RETURNS int LANGUAGE sql AS $$ SELECT length(public.trap('int4')) $$;
		CREATE EXTENSION pg_trgm VERSION '1.3'; CREATE EXTENSION citext VERSION '1.4'`))(t)
	for _, e := range s.extensions(t, w).Entries {
		if e.DefaultVersion != supported[e.Name] || e.InstalledVersion == "9.9" {
			t.Errorf("%+v", e)
		}
	}
	for name, change := range map[extension.Name]extension.Change{
		extension.PgTrgm: extension.Upgrade, extension.Citext: extension.Upgrade, extension.PgCrypto: extension.Install,
	} {
		s.wantChanged(t, w, w.change(change, name), name)
	}
	var caught string
	check.NoError(t, owner.QueryRow("SELECT coalesce(string_agg(what || ' as ' || who, ', '), '') FROM public.caught").Scan(&caught))
	if caught != "" {
		t.Error("a script of an extension ran ", caught)
	}
}

// Code that runs in the session of a change has the owner's rights and no others, whatever it sets. Only a superuser can make an
// event trigger; it stands for whatever a customer might get to run there. What the script does runs as the superuser anyhow.
func TestTheSessionOfAChangeHasTheOwnersRights(t *testing.T) {
	s := realStack(t)
	w, other := s.made(t, database.Managed), s.made(t, database.Managed)
	super := s.superIn(t, w)
	check.Must(super.Exec(fmt.Sprintf(`CREATE TABLE public.done (what text, who text); GRANT ALL ON public.done TO PUBLIC;
		CREATE FUNCTION public.try(what text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
			EXECUTE what; INSERT INTO public.done VALUES (what, current_user);
		EXCEPTION WHEN OTHERS THEN NULL; END $$;
		CREATE FUNCTION public.during() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
			IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN RETURN; END IF;
			PERFORM public.try('SELECT 1');
			PERFORM public.try('CREATE ROLE mine');
			PERFORM public.try('SET ROLE pgherd_agent');
			PERFORM public.try('SET SESSION AUTHORIZATION pgherd_agent');
			PERFORM public.try('GRANT %[1]q TO CURRENT_USER');
			PERFORM public.try('RESET ROLE');
			PERFORM public.try('CREATE ROLE mine');
			PERFORM public.try('SET ROLE pgherd_agent');
			PERFORM public.try('SET SESSION AUTHORIZATION pgherd_agent');
			PERFORM public.try('GRANT %[1]q TO CURRENT_USER');
		END $$;
		CREATE EVENT TRIGGER after ON ddl_command_end EXECUTE FUNCTION public.during()`, other.name)))(t)
	c := w.change(extension.Install, extension.PgTrgm)
	if got := s.changedBy(t, c); got.State != command.ExtensionDone {
		t.Fatalf("%+v", got)
	}
	const done = `SELECT string_agg(what || ' as ' || who, ', ') FROM public.done`
	want := fmt.Sprintf("SELECT 1 as %s, RESET ROLE as ext_%s", w.name, strings.ReplaceAll(c.OperationID, "-", ""))
	var got string
	if check.NoError(t, super.QueryRow(done).Scan(&got)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A transaction of the owner's in the way is waited for, and named. Nobody else waits, and backups that hang are in nobody's way.
func TestALockInTheWayOfAnExtension(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	s.config.ExtensionLockWait, s.config.ExtensionPatience, s.config.Jobs = 200*time.Millisecond, time.Second, 1
	ctx, stop := context.WithCancel(t.Context())
	_, _, ended := s.started(t, ctx)
	defer func() { stop(); <-ended }()
	s.startBouncer(t, t.Context())
	w, other := s.made(t, database.Managed), s.made(t, database.Managed)
	check.Must(s.owner(t, w).Exec(`CREATE TABLE held ()`))(t)
	tx := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec(`CREATE EXTENSION pg_trgm; LOCK TABLE held`))(t)
	s.done(t, w.backup(newUUID(), backupName, false))

	held := w.change(extension.Install, extension.PgTrgm)
	s.done(t, held)
	s.wantChanged(t, other, other.change(extension.Install, extension.PgTrgm), extension.PgTrgm)
	if e := s.extensionOf(t, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("%+v", e)
	}
	s.wantUnchanged(t, held, "for a lock that a transaction of the login "+w.name+", open since ")
	check.NoError(t, tx.Rollback())
	s.wantUnchanged(t, held, "for a lock") // as before
	s.wantChanged(t, w, w.change(extension.Install, extension.PgTrgm), extension.PgTrgm)
	s.noChangeLogins(t)
}

// An agent that is killed at any point of a change leaves no doubt about it, and nothing else: who asks again gets it done, and
// who closes the operation gets it undone or hears that it is done.
func TestCrashWhileChangingAnExtension(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	points := append(pointsOf("extension"), crash.BackupAdmitted, crash.BackupFinished, crash.BackupReply)
	then := []func(*testing.T, wanted, string, protocol.Command){
		func(t *testing.T, w wanted, _ string, c protocol.Command) {
			s.wantChanged(t, w, c, extension.PgTrgm)
			s.refusedFor(t, command.ReasonCompleted, closing(c.OperationID))
		},
		s.closedOrDone,
	}
	maker := s.child(t, "")
	undone, crashed := s.made(t, database.Managed), s.made(t, database.Managed)
	made := map[string]wanted{}
	for i, point := range points {
		for n := range then {
			if turn(i+1, n, len(then)) {
				made[fmt.Sprint(point, " ", n)] = s.made(t, database.Managed)
			}
		}
	}
	maker.kill()
	for _, point := range points {
		for n, follow := range then {
			w, tried := made[fmt.Sprint(point, " ", n)]
			if !tried {
				continue
			}
			t.Run(fmt.Sprint(point, " ", n), func(t *testing.T) {
				c := w.change(extension.Install, extension.PgTrgm)
				s.child(t, point).diesOver(t, s, c)
				next := s.child(t, "")
				follow(t, w, point, c)
				s.noChangeLogins(t)
				next.kill()
			})
		}
	}
	t.Run("the owner undoes it", func(t *testing.T) { s.doneOnce(t, undone) })
	t.Run("PostgreSQL crashes", func(t *testing.T) { s.serverCrashInAChange(t, crashed) })
	s.noOrphans(t)
}

// closedOrDone closes a change whose agent died at a point.
func (s *stack) closedOrDone(t *testing.T, w wanted, point string, c protocol.Command) {
	t.Helper()
	if slices.Contains([]string{crash.ExtensionCommitted, crash.BackupFinished, crash.BackupReply}, point) {
		s.refusedFor(t, command.ReasonCompleted, closing(c.OperationID))
		return
	}
	s.done(t, closing(c.OperationID))
	s.refusedFor(t, command.ReasonClosed, c)
	if e := s.extensionOf(t, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("it stands: %+v", e)
	}
}

// PostgreSQL crashes with the change made and not committed, while the agent stands still. It is found to be undone, and made.
func (s *stack) serverCrashInAChange(t *testing.T, w wanted) {
	t.Helper()
	c := w.change(extension.Install, extension.PgTrgm)
	working := s.child(t, crash.Stop+crash.ExtensionMade)
	go func() { _, _, _ = s.send(c) }() // it is sent again
	working.stopped(t)
	check.NoError(t, s.pg.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
	working.thaw(t)
	var report command.ExtensionReport
	check.Eventually(t, "the change is not made after the crash", func() bool {
		result, reason, err := s.send(c)
		return err == nil && reason == "" && json.Unmarshal(result, &report) == nil && report.State != command.ExtensionRunning
	})
	if report.State != command.ExtensionDone || !report.Changed {
		t.Errorf("%+v", report)
	}
	s.wantInUse(t, w, extension.PgTrgm)
	s.noChangeLogins(t)
	working.kill()
}

// What was committed stays done, also where the owner undoes it before the next agent looks.
func (s *stack) doneOnce(t *testing.T, w wanted) {
	t.Helper()
	c := w.change(extension.Install, extension.PgTrgm)
	s.child(t, crash.ExtensionCommitted).diesOver(t, s, c)
	check.Must(s.owner(t, w).Exec("DROP EXTENSION pg_trgm"))(t)
	next := s.child(t, "")
	if got := s.changedBy(t, c); got.State != command.ExtensionDone || !got.Changed {
		t.Errorf("%+v", got)
	}
	if e := s.extensionOf(t, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("it was installed again: %+v", e)
	}
	next.kill()
}
