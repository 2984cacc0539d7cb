package spec

import (
	"encoding/json"
	"slices"

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
}
