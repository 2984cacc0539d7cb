package extensions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
)

// What the owner has set for their login, or the service for the database, does not reach the session of a change.
func TestSettingsAreNotThoseOfACustomer(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.Made(t, database.Managed)
	owner := s.Owner(t, w)
	check.Must(owner.Exec(`CREATE SCHEMA mine; ALTER ROLE CURRENT_USER SET search_path = mine;
		ALTER ROLE CURRENT_USER SET role = none; ALTER ROLE CURRENT_USER SET statement_timeout = 1;
		ALTER ROLE CURRENT_USER SET lock_timeout = 1; ALTER ROLE CURRENT_USER SET local_preload_libraries = 'none_of_that_name'`))(t)
	super := s.SuperIn(t, w)
	for _, set := range []string{
		"default_transaction_read_only = on", "statement_timeout = 1", "lock_timeout = 1", "search_path = mine",
		"idle_in_transaction_session_timeout = 1", "synchronous_commit = off",
	} {
		check.Must(super.Exec(fmt.Sprintf("ALTER DATABASE %q SET %s", w.Name, set)))(t)
	}
	c := w.Change(extension.Install, extension.PgTrgm)
	if got := changedBy(t, s, c); got.State != command.ExtensionDone || got.Schema != "public" {
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
	s := agenttest.Shared(t)
	for what, o := range obstacles {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := s.Made(t, database.Managed)
			_, err := s.Owner(t, w).Exec(o.sql)
			if agenttest.SQLState(err) == "42501" { // operator classes are a superuser's; but it must not matter who has made it
				_, err = s.SuperIn(t, w).Exec(o.sql)
			}
			check.NoError(t, err)
			wantUnchanged(t, s, w.Change(extension.Install, o.name), o.why)
		})
	}
}

// Everything in public whose name and arguments fit better than those of pg_catalog stands there as a trap: each notes who runs
// it. The scripts of the extensions run none of them.
func TestScriptsOfExtensionsRunNothingOfACustomers(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.Made(t, database.Managed)
	owner := s.Owner(t, w)
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
	for _, e := range extensions(t, s, w).Entries {
		if e.DefaultVersion != agenttest.Supported(e.Name) || e.InstalledVersion == "9.9" {
			t.Errorf("%+v", e)
		}
	}
	for name, change := range map[extension.Name]extension.Change{
		extension.PgTrgm: extension.Upgrade, extension.Citext: extension.Upgrade, extension.PgCrypto: extension.Install,
	} {
		wantChanged(t, s, w, w.Change(change, name), name)
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
	s := agenttest.Shared(t)
	w, other := s.Made(t, database.Managed), s.Made(t, database.Managed)
	super := s.SuperIn(t, w)
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
		CREATE EVENT TRIGGER after ON ddl_command_end EXECUTE FUNCTION public.during()`, other.Name)))(t)
	c := w.Change(extension.Install, extension.PgTrgm)
	if got := changedBy(t, s, c); got.State != command.ExtensionDone {
		t.Fatalf("%+v", got)
	}
	const done = `SELECT string_agg(what || ' as ' || who, ', ') FROM public.done`
	want := fmt.Sprintf("SELECT 1 as %s, RESET ROLE as ext_%s", w.Name, strings.ReplaceAll(c.OperationID, "-", ""))
	var got string
	if check.NoError(t, super.QueryRow(done).Scan(&got)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A transaction of the owner's in the way is waited for, and named. No other account waits, and backups that hang are in nobody's
// way.
func TestALockInTheWayOfAnExtension(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.ExtensionLockWait, s.Config.ExtensionPatience, s.Config.Jobs = time.Second, 6*time.Second, 1
	ctx, stop := context.WithCancel(t.Context())
	_, _, ended := s.Started(ctx, t)
	defer func() { stop(); <-ended }()
	s.StartBouncer(t.Context(), t)
	w, other := s.Made(t, database.Managed), s.Made(t, database.Managed)
	s.TellAccounts(t, map[string][]agenttest.Wanted{agenttest.NewUUID(): {w}, agenttest.NewUUID(): {other}})
	check.Must(s.Owner(t, w).Exec(`CREATE TABLE held ()`))(t)
	tx := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec(`CREATE EXTENSION pg_trgm; LOCK TABLE held`))(t)
	s.Done(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, false))

	held := w.Change(extension.Install, extension.PgTrgm)
	s.Done(t, held)
	if got := changedBy(t, s, other.Change(extension.Install, extension.PgTrgm)); got.State != command.ExtensionDone {
		t.Errorf("%+v", got)
	}
	if got := agenttest.As[command.ExtensionReport](t, s.Done(t, held)); got.State != command.ExtensionRunning {
		t.Errorf("the other account's change has waited for %+v", got)
	}
	wantUnchanged(t, s, held, "for a lock that a transaction of the login "+w.Name+", open since ")
	check.NoError(t, tx.Rollback())
	wantUnchanged(t, s, held, "for a lock") // as before
	wantChanged(t, s, w, w.Change(extension.Install, extension.PgTrgm), extension.PgTrgm)
	noChangeLogins(t, s)
}
