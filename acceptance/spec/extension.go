package spec

import (
	"encoding/json"
	"slices"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/extension"
)

var extending = []Scenario{
	{Name: "each extension of the catalog is installed, in its supported version", Play: func(s *Stage) {
		ada, made := s.Extender()
		before := ada.SeesExtensions(made)
		var names []extension.Name
		for _, e := range before {
			names = append(names, e.Name)
			s.That(e.Available && e.Trusted && e.RestoreQualified && e.InstalledVersion == nil && e.Schema == nil, "it has %+v", e)
		}
		s.That(slices.Equal(names, extension.Names), "the catalog is %v", names)
		for _, e := range before {
			done := ada.Installs(made, e.Name)
			var result extension.Result
			s.OK(json.Unmarshal(*done.Result, &result))
			s.That(result == extension.Result{Extension: e.Name, InstalledVersion: e.DefaultVersion, Schema: "public"},
				"the result is %+v", result)
			s.That(done.Type == "extension" && done.Progress == 100 && done.Error == nil, "it ended as %+v", done)
		}
		for _, e := range ada.SeesExtensions(made) {
			s.That(e.InstalledVersion != nil && *e.InstalledVersion == e.DefaultVersion && *e.Schema == "public", "it has %+v", e)
		}
		list := ada.ListsOperations(made.ID)
		s.That(len(list) == 3 && list[0].Type == "extension", "the operations are %+v", list)
	}},
	{Name: "what is installed works through both entries, and elsewhere in what a backup restores", Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			ada, made := s.Extender()
			for _, name := range extension.Names {
				ada.Installs(made, name)
			}
			const use = "SELECT concat('A'::citext = 'a', similarity('word', 'ward'), encode(digest('x', 'sha1'), 'hex'))"
			const want = "t0.25" + "11f6ad8ec52a2984abaafd7c3b516503785c2072"
			pooled := made.Login()
			pooled.Database += ".transaction"
			for _, l := range []Login{made.Login(), pooled} {
				rows := must(s.SQL.Run(l, use))(s)
				s.That(len(rows) == 1 && rows[0] == want, "%s has %v", l.Database, rows)
			}
			must(s.SQL.Run(made.Login(), "CREATE TABLE word (w citext)", "INSERT INTO word VALUES ('Word')",
				"CREATE INDEX ON word USING gin ((w::text) gin_trgm_ops)",
				"CREATE VIEW note (body) AS SELECT concat(w = 'WORD', similarity(w::text, 'ward'), "+
					"encode(digest('x', 'sha1'), 'hex')) FROM word",
				"SELECT 1"))(s)
			s.holds(ada.Downloads(made.ID, ada.FinishesBackup(made.ID)), want)
		}},
	{Name: "an older version of the owner's own is upgraded, once", Play: func(s *Stage) {
		ada, made := s.Extender()
		s.OK(s.OnServer.OwnExtension(made, "pg_trgm", "1.3", "public"))
		s.unavailable(ada, made, "pg_trgm", "install")
		done := ada.Extends(made, "pg_trgm", "upgrade", "upgrade-1")
		s.That(done.Status == "succeeded", "it ended as %s: %+v", done.Status, done.Error)
		e := ada.SeesExtension(made, "pg_trgm")
		s.That(*e.InstalledVersion == "1.6" && *e.Schema == "public", "it has %+v", e)
		s.unavailable(ada, made, "pg_trgm", "upgrade")
		s.unavailable(ada, made, "citext", "upgrade")
	}},
	{Name: "what stands in another schema is left alone", Play: func(s *Stage) {
		ada, made := s.Extender()
		s.OK(s.OnServer.OwnExtension(made, "pg_trgm", "1.3", "app"))
		s.unavailable(ada, made, "pg_trgm", "install")
		s.unavailable(ada, made, "pg_trgm", "upgrade")
		e := ada.SeesExtension(made, "pg_trgm")
		s.That(*e.InstalledVersion == "1.3" && *e.Schema == "app", "it has %+v", e)
	}},
	{Name: "a repeated request gets its operation, and its key is good for nothing else", Play: func(s *Stage) {
		ada, made := s.Extender()
		done := ada.Extends(made, "citext", "install", "deploy-1")
		again := must(ada.ChangeExtension(made.ID, "citext", "install", "deploy-1"))(s)
		s.That(again.ID == done.ID && again.Status == "succeeded" && again.IdempotencyKey == done.IdempotencyKey, "it is %+v", again)
		for _, name := range []extension.Name{"citext", "pgcrypto"} {
			for _, kind := range []extension.Change{"install", "upgrade"} {
				if name != "citext" || kind != "install" {
					_, err := ada.ChangeExtension(made.ID, name, kind, "deploy-1")
					s.Refused(err, "EXTENSION_MUTATION_UNAVAILABLE")
				}
			}
		}
		other := ada.Creates("other")
		theirs := ada.Extends(other, "citext", "install", "deploy-1")
		s.That(theirs.ID != done.ID && theirs.IdempotencyKey != done.IdempotencyKey, "another database's is %+v", theirs)
	}},
	{Name: "what cannot be prepared fails, and changes nothing", Play: func(s *Stage) {
		ada, made := s.Extender()
		s.OK(s.OnServer.BlockExtension(made, true))
		done := ada.Extends(made, "citext", "install", "deploy-1")
		s.That(done.Status == "failed" && done.Error != nil && done.Error.Code == "EXTENSION_PREPARATION_FAILED" &&
			done.Error.Message != "" && done.Result == nil, "it ended as %s: %+v", done.Status, done.Error)
		s.That(ada.SeesExtension(made, "citext").InstalledVersion == nil, "it is installed")
		s.OK(s.OnServer.BlockExtension(made, false))
		ada.Installs(made, "citext")
	}},
	{Name: "a database without managed logins has the catalog alone", Play: func(s *Stage) {
		ada, _ := s.Extender()
		single := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
		s.That(len(ada.SeesExtensions(single)) == 3, "the catalog is %+v", ada.SeesExtensions(single))
		s.unavailable(ada, single, "citext", "install")
	}},
	{Name: "a stopped database has no catalog and no changes", Play: func(s *Stage) {
		ada, made := s.Extender()
		done := ada.Installs(made, "citext")
		ada.Sets(made.ID, "stop", "stopped")
		s.Refused(refusal(ada.Extensions.List(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
		s.unavailable(ada, made, "pgcrypto", "install")
		s.That(ada.ReadsExtension(made, done.ID).Status == "succeeded", "what was done is not shown")
	}},
	{Name: "a body says exactly which extension, and what to do", Play: func(s *Stage) {
		ada, made := s.Extender()
		for name, kind := range map[extension.Name]extension.Change{"postgis": "install", "citext": "drop", "CITEXT": "install"} {
			_, err := ada.ChangeExtension(made.ID, name, kind, "key")
			field := "extension"
			if name == "citext" {
				field = "kind"
			}
			s.Refused(err, "VALIDATION_ERROR", field)
		}
	}},
	{Name: "the activity log tells who changed which extension", Play: func(s *Stage) {
		ada, made := s.Extender()
		done := ada.Installs(made, "citext")
		log := ada.ReadsActivity(made.ID)
		for _, action := range []audit.Action{audit.ExtensionRequested, audit.ExtensionFinished} {
			e := s.only(log, action)
			s.That(ada.did(e) && e.Details["operationId"] == string(done.ID) && e.Details["extension"] == "citext" &&
				e.Details["change"] == "install" && e.Details["version"] == "1.6", "the entry is %+v", e)
		}
	}},
}
