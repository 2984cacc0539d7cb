package spec

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/recovery"
)

// rescuing is about tables that come back beside those of now.
var rescuing = []Scenario{
	{Name: "a table of then comes into a schema of its own, and the database stays as it is", Both: true,
		Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
			ada, made := s.Clonable()
			session := s.Connects(made.Login())
			s.OK(session.Write("kept", "kept too"))
			at := s.moment()
			s.OK(session.Write("later"))
			s.hasWindow(ada, made)
			ask := wire.RescueTables{PointInTime: at, Tables: []string{"NOTE"}}
			key := apiclient.IdempotencyKey(s.Name("key"))
			begun := must(ada.Recovery.RescueTables(ctx, made.ID, ask, key))(s).Operation
			s.That(begun.Type == "rescue" && begun.DatabaseID == made.ID && !begun.Status.Final(), "it began as %+v", begun)
			done := ada.Follows(begun)
			s.That(done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
			var result recovery.RescueResult
			s.OK(json.Unmarshal(*done.Result, &result))
			then := must(recovery.Parse(at))(s)
			s.That(result.At.Equal(then) && result.Schema == recovery.RescueSchema(then) && len(result.Notes) == 0 &&
				len(result.Tables) == 1 && result.Tables[0] == recovery.Rescued{Of: "note", Name: "note", Rows: 2},
				"its result is %+v", result)
			s.That(session.Alive(), "a session was ended")
			s.hasNotes(ada, made, "kept", "kept too", "later")
			log := s.only(ada.ReadsActivity(made.ID), "rescue.requested")
			s.That(log.Details["tables"] == "note" && log.Details["schema"] == result.Schema, "the log has %+v", log)
			s.only(ada.ReadsActivity(made.ID), "rescue.finished")

			again := must(ada.Recovery.RescueTables(ctx, made.ID, ask, key))(s).Operation
			s.That(again.ID == begun.ID && again.Status == "succeeded", "the same request makes %+v", again)
			other := ask
			other.Tables = []string{"other"}
			s.Refused(refusal(ada.Recovery.RescueTables(ctx, made.ID, other, key)), "DATABASE_STATE_CONFLICT")
			failed := ada.Follows(must(ada.Recovery.RescueTables(ctx, made.ID, ask))(s).Operation)
			s.That(failed.Status == "failed" && failed.Error.Code == "DATABASE_STATE_CONFLICT",
				"a second one is %+v: %+v", failed, failed.Error)
		}},
	{Name: "a rescue of a table that was not there fails, and leaves nothing", Needs: []Ability{Archives, Restoring},
		Play: func(s *Stage) {
			ada, made := s.Clonable()
			s.OK(s.Connects(made.Login()).Write("kept"))
			at := s.moment()
			s.hasWindow(ada, made)
			for range 2 { // nothing of the first is in the way of the second
				ask := wire.RescueTables{PointInTime: at, Tables: []string{"note", "app.missing"}}
				o := ada.Follows(must(ada.Recovery.RescueTables(ctx, made.ID, ask))(s).Operation)
				s.That(o.Status == "failed" && o.Error.Code == "VALIDATION_ERROR" &&
					o.Error.Message == "tables[1]: app.missing was not there then",
					"it is %+v: %+v", o, o.Error)
			}
		}},
	{Name: "a rescue names tables and a moment, of an enrolled database of the account's own", Play: func(s *Stage) {
		ada, made := s.Owner()
		at := s.now().Format(time.RFC3339)
		ask := func(c *Customer, at string, tables ...string) error {
			return refusal(c.Recovery.RescueTables(ctx, made.ID, wire.RescueTables{PointInTime: at, Tables: tables}))
		}
		s.Refused(ask(ada, at, "note"), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(made.ID, "clone"))
		for _, text := range []string{"", "2026-03-01T11:30:00", "2026-03-01 11:30:00+01"} {
			s.Refused(ask(ada, text, "note"), "VALIDATION_ERROR", "pointInTime")
		}
		s.Refused(ask(ada, at), "VALIDATION_ERROR", "tables")
		s.Refused(ask(ada, at, "note", "no te"), "VALIDATION_ERROR", "tables[1]")
		s.Refused(ask(ada, at, "note", "Note"), "VALIDATION_ERROR", "tables[1]")
		s.Refused(ask(s.Customer("pro"), at, "note"), "DATABASE_NOT_FOUND")
		s.Refused(ask(s.WithKey(ada.Account, made.ID), at, "note"), "KEY_SCOPE_DENIED")
		s.That(len(ada.ListsOperations(made.ID)) == 0, "they left operations")
	}},
}
