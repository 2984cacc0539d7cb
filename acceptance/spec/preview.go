package spec

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// previewing needs no agent that deletes.
var previewing = []Scenario{
	{Name: "a pipeline gets one preview for a ref, whatever else it asks for", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci := s.Pipeline(ada)
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "refs/pull/17"}))(s)
		p := made.Data
		s.That(p.Ref == "refs/pull/17" && p.LeaseStatus == "active" && p.LeaseGeneration == 1 && p.ScheduledBackup == "none" &&
			p.NamespaceID != "" && p.RecoveryDeadline == nil, "it is %+v", p)
		s.OK(s.Connects(loginOf(made)).Write("kept"))
		asked := wire.CreatePreview{Ref: "refs/pull/17", TTLHours: new(24), ScheduledBackup: optional(p.ScheduledBackup)}
		again := must(ci.Previews.Create(ctx, asked))(s)
		s.That(again == made, "the second answer is %+v; the first was %+v", again, made)
		s.That(must(ci.Previews.Get(ctx, p.DatabaseID))(s) == p, "it reads differently")
		for _, other := range []wire.CreatePreview{
			{Ref: "refs/pull/17", TTLHours: new(23)}, {Ref: "refs/pull/17", ScheduledBackup: optional(daily)},
		} {
			s.Refused(refusal(ci.Previews.Create(ctx, other)), "PREVIEW_CONFLICT")
		}
		for field, bad := range map[string]wire.CreatePreview{
			"ref": {Ref: "a\nb"}, "ttlHours": {Ref: "a", TTLHours: new(73)},
			"scheduledBackup": {Ref: "a", ScheduledBackup: optional(hourly)},
		} {
			s.Refused(refusal(ci.Previews.Create(ctx, bad)), "VALIDATION_ERROR", field)
		}
		s.Refused(refusal(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "a", TTLHours: new(0)})), "VALIDATION_ERROR", "ttlHours")
		s.That(slices.Equal(ada.SeesAll(), []id.DatabaseID{p.DatabaseID}), "the account sees %v", ada.SeesAll())
		seen := ada.Sees(p.DatabaseID)
		s.That(seen.Name == made.Connection.Database && seen.Status == "active", "the account sees %+v", seen)
	}},
	{Name: "a pipeline finds the preview of a ref, and nothing is made", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci := s.Pipeline(ada)
		const ref = "feature/a b+c&d=1%2F#ü"
		s.Refused(refusal(ci.Previews.Find(ctx, ref)), "PREVIEW_NOT_FOUND")
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: ref, TTLHours: new(72)}))(s).Data
		s.That(must(ci.Previews.Find(ctx, ref))(s) == made, "it is found as %+v", must(ci.Previews.Find(ctx, ref))(s))
		long := strings.Repeat("ü", 200)
		s.Refused(refusal(ci.Previews.Find(ctx, long)), "PREVIEW_NOT_FOUND")
		for _, bad := range []string{"", "a\nb", long + "r"} {
			s.Refused(refusal(ci.Previews.Find(ctx, bad)), "VALIDATION_ERROR", "ref")
		}
		for _, query := range []string{"", "?", "?REF=a", "?ref", "?ref=a&ref=b", "?ref=%ff"} {
			answer := s.sends(Request{Method: "GET", Path: "/api/v1/previews" + query, Key: ci.Key.Text})
			s.Refused(answer.refusal(), "VALIDATION_ERROR", "ref")
		}
		s.That(len(ada.SeesAll()) == 1, "the account sees %v", ada.SeesAll())
	}},
	{Name: "many jobs that ask for one ref at once get the same preview", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci := s.Pipeline(ada)
		var all sync.WaitGroup
		var got [5]wire.CreatedPreview
		var errs [5]error
		for i := range got {
			all.Go(func() { got[i], errs[i] = ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}) })
		}
		all.Wait()
		for i := range got {
			s.OK(errs[i])
			s.That(got[i] == got[0], "one got %+v, and another one %+v", got[i], got[0])
		}
		s.Connects(loginOf(got[0]))
		s.That(len(ada.SeesAll()) == 1, "%d databases exist", len(ada.SeesAll()))
	}},
	{Name: "a repeated request does not tell a password that the owner has changed", Play: func(s *Stage) {
		ci := s.Pipeline(s.Customer("pro"))
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s)
		s.OK(s.OnServer.SetPassword(loginOf(made), "chosen by the owner"))
		again := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s)
		s.That(again.Data == made.Data && again.Connection.Password == "" && again.Connection.ConnectionString == "",
			"it tells %+v", again)
	}},
	{Name: "a lease is renewed from now on, and never shortened", Play: func(s *Stage) {
		ci := s.Pipeline(s.Customer("pro"))
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main", TTLHours: new(48)}))(s).Data
		kept := must(ci.Previews.Extend(ctx, made.DatabaseID, wire.ExtendPreview{TTLHours: 1}))(s)
		s.That(kept.ExpiresAt.Equal(made.ExpiresAt) && kept.LeaseGeneration == 2, "it is %+v; it was %+v", kept, made)
		longer := must(ci.Previews.Extend(ctx, made.DatabaseID, wire.ExtendPreview{TTLHours: 72}))(s)
		s.That(longer.ExpiresAt.Sub(made.ExpiresAt) >= 24*time.Hour && longer.LeaseGeneration == 3, "it is %+v", longer)
		for _, bad := range []int{0, -1, 73} {
			s.Refused(refusal(ci.Previews.Extend(ctx, made.DatabaseID, wire.ExtendPreview{TTLHours: bad})), "VALIDATION_ERROR", "ttlHours")
		}
		changed := must(ci.Previews.SetBackupPolicy(ctx, made.DatabaseID, wire.SetBackupPolicy{ScheduledBackup: daily}))(s)
		s.That(changed.ScheduledBackup == daily && changed.LeaseGeneration == 3, "it is %+v", changed)
		again := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main", TTLHours: new(48)}))(s)
		s.That(again.Data == changed, "the same request gets %+v", again.Data)
	}},
	{Name: "only keys of its namespace reach a preview, and all else gets the same bytes", Play: func(s *Stage) {
		ada, mallory := s.Customer("pro"), s.Customer("pro")
		mine, sibling := s.Pipeline(ada), s.Pipeline(ada)
		made := must(mine.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data.DatabaseID
		theirs := must(s.Pipeline(mallory).Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data.DatabaseID
		plain := ada.Creates("orders").ID
		for _, route := range s.ofPreviews() {
			missing := s.sends(s.request(route, nobodysID, nobodysID, sibling.Key.Text))
			s.Refused(missing.refusal(), "PREVIEW_NOT_FOUND")
			for _, out := range []id.DatabaseID{made, theirs, plain} {
				s.sameAnswer(route, missing, s.sends(s.request(route, string(out), nobodysID, sibling.Key.Text)))
			}
			for _, in := range []id.DatabaseID{made, nobodysID} {
				refused := s.sends(s.request(route, string(in), nobodysID, ada.Key.Text))
				s.Refused(refused.refusal(), "KEY_SCOPE_DENIED")
			}
		}
		find := func(ref, key string) Answer {
			return s.sends(Request{Method: "GET", Path: "/api/v1/previews?ref=" + ref, Key: key})
		}
		missing := find("nothing", sibling.Key.Text)
		s.Refused(missing.refusal(), "PREVIEW_NOT_FOUND")
		s.sameAnswer(Route{Method: "GET", Path: "/api/v1/previews"}, missing, find("main", sibling.Key.Text))
		s.That(must(mine.Previews.Find(ctx, "main"))(s).DatabaseID == made, "the ref has another preview")
		s.Refused(find("main", ada.Key.Text).refusal(), "KEY_SCOPE_DENIED")
		s.Refused(refusal(ada.Previews.Create(ctx, wire.CreatePreview{Ref: "main"})), "KEY_SCOPE_DENIED")
		s.That(must(mine.Previews.Get(ctx, made))(s).LeaseGeneration == 1, "a refused request had an effect")
	}},
	{Name: "previews take places in the quota", Play: func(s *Stage) {
		ada, free := s.Customer("pro"), s.Customer("free")
		s.OK(s.Operator.SetQuota(ada.Account, 2))
		ci := s.Pipeline(ada)
		ada.Creates("orders")
		must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "one"}))(s)
		s.Refused(refusal(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "two"})), "PLAN_LIMIT")
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: s.Name("more"), DisplayName: "D"})), "PLAN_LIMIT")
		s.Refused(refusal(s.Pipeline(free).Previews.Create(ctx, wire.CreatePreview{Ref: "one"})), "PLAN_LIMIT")
	}},
	{Name: "a preview is not brought back, copied or deleted by the routes of databases", Play: func(s *Stage) {
		ada := s.Customer("pro")
		p := must(s.Pipeline(ada).Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data
		s.OK(s.Operator.Enroll(p.DatabaseID, "all"))
		for _, route := range s.targeted() {
			if !slices.Contains(notForPreviews, route.line()) {
				continue
			}
			r := s.request(route, string(p.DatabaseID), nobodysID, s.WithKey(ada.Account).Key.Text)
			r.Body = []byte(validForPreviews[route.line()])
			s.Logf("%s", route)
			s.Refused(s.sends(r).refusal(), "PREVIEW_CONFLICT")
		}
	}},
}

// notForPreviews are the routes about databases that refuse previews, and validForPreviews their bodies.
var notForPreviews = []string{
	"DELETE /databases/{id}", "POST /databases/{id}/clone", "POST /databases/{id}/rescue", "POST /databases/{id}/managed-restores",
	"POST /databases/{id}/comparisons", "POST /databases/{id}/searches",
	"POST /databases/{id}/backups/{filename}", "POST /databases/{id}/backups/restore-upload/init",
	"PUT /databases/{id}/backups/restore-upload/{uploadId}", "POST /databases/{id}/backups/restore-upload/complete",
}

var validForPreviews = map[string]string{
	"POST /databases/{id}/clone":                           `{"name":"a-copy-of-it","displayName":"A copy"}`,
	"POST /databases/{id}/rescue":                          `{"pointInTime":"2026-03-01T12:30:00Z","tables":["orders"]}`,
	"POST /databases/{id}/comparisons":                     `{"from":"2026-03-01T12:30:00Z","to":"2026-03-01T13:30:00Z"}`,
	"POST /databases/{id}/searches":                        `{"query":"SELECT 1","until":"= 1"}`,
	"POST /databases/{id}/managed-restores":                `{"backupFilename":"20260101_000000.sql.gz"}`,
	"POST /databases/{id}/backups/{filename}":              `{"confirmDisconnect":true}`,
	"POST /databases/{id}/backups/restore-upload/init":     `{"sizeBytes":1,"checksumSha256":"` + sumOfNothing + `"}`,
	"POST /databases/{id}/backups/restore-upload/complete": `{"uploadId":"` + nobodysID + `","confirmDisconnect":true}`,
}

const sumOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// endingPreviews are previews that are deleted.
var endingPreviews = []Scenario{
	{Name: "a preview is deleted with a backup of its own, and its ref makes another one", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci := s.Pipeline(ada)
		first := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s)
		s.OK(s.Connects(loginOf(first)).Write("kept"))
		of := first.Data.DatabaseID
		deleting := must(ci.Previews.Delete(ctx, of))(s)
		s.That(deleting.LeaseStatus == "deleting" && deleting.DatabaseID == of, "it is %+v", deleting)
		must(ci.Previews.Delete(ctx, of))(s)
		s.That(must(ci.Previews.Find(ctx, "main"))(s).DatabaseID == of, "the ref does not have it any more")
		s.Refused(refusal(ci.Previews.Extend(ctx, of, wire.ExtendPreview{TTLHours: 1})), "PREVIEW_LEASE_ENDED")
		deleted := ci.awaitsDeletion(of)
		s.That(deleted.RecoveryDeadline != nil, "it has no deadline: %+v", deleted)
		s.Refused(refusal(ci.Previews.Find(ctx, "main")), "PREVIEW_NOT_FOUND")
		s.ShutOut(loginOf(first))
		again := must(ci.Previews.Delete(ctx, of))(s)
		s.That(again.LeaseStatus == "deleted" && again.RecoveryDeadline.Equal(*deleted.RecoveryDeadline), "it became %+v", again)
		s.That(len(ada.SeesAll()) == 0, "the account sees %v", ada.SeesAll())

		second := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main", TTLHours: new(1)}))(s)
		s.That(second.Data.DatabaseID != of && second.Connection.Database != first.Connection.Database, "it is the same: %+v", second)
		s.Connects(loginOf(second))
	}},
	{Name: "a deleted preview is recovered by its account, with a new lease of a day", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci := s.Pipeline(ada)
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main", TTLHours: new(1)}))(s)
		s.OK(s.Connects(loginOf(made)).Write("kept"))
		of := made.Data.DatabaseID
		must(ci.Previews.Delete(ctx, of))(s)
		ci.awaitsDeletion(of)
		s.Refused(refusal(ada.Databases.Recover(ctx, of)), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(of, "recover"))
		s.Refused(refusal(ci.Databases.Recover(ctx, of)), "KEY_SCOPE_DENIED")
		second := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data.DatabaseID
		s.Refused(refusal(ada.Databases.Recover(ctx, of)), "PREVIEW_CONFLICT")
		must(ci.Previews.Delete(ctx, second))(s)
		ci.awaitsDeletion(second)

		began := time.Now()
		done := ada.Follows(must(ada.Databases.Recover(ctx, of))(s).Operation)
		s.That(done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
		p := must(ci.Previews.Get(ctx, of))(s)
		s.That(p.LeaseStatus == "active" && p.LeaseGeneration == 2 && p.RecoveryDeadline == nil, "it is %+v", p)
		if s.Clock == nil { // the machine's
			s.That(p.ExpiresAt.After(began.Add(23*time.Hour)), "it ends at %s", p.ExpiresAt)
		}
		s.Connects(loginOf(made))
		s.hasNotes(ada, Created{CreatedDatabase: wire.CreatedDatabase{Database: ada.Sees(of)}}, "kept")
		must(ci.Previews.Extend(ctx, of, wire.ExtendPreview{TTLHours: 72}))(s)
	}},
	{Name: "what is asked for while a backup runs is done afterwards", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci := s.Pipeline(ada)
		p := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data
		ada.BacksUp(p.DatabaseID)
		released := must(ci.Previews.Delete(ctx, p.DatabaseID))(s)
		s.That(released.LeaseStatus != "active", "it is %+v", released)
		ci.awaitsDeletion(p.DatabaseID)
	}},
	{Name: "a lease that ends takes its preview along", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ci := s.Pipeline(s.Customer("pro"))
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main", TTLHours: new(2)}))(s)
		s.OK(s.Clock.Advance(time.Hour))
		p := must(ci.Previews.Extend(ctx, made.Data.DatabaseID, wire.ExtendPreview{TTLHours: 2}))(s)
		s.OK(s.Clock.Advance(119 * time.Minute))
		s.Connects(loginOf(made))
		s.OK(s.Clock.Advance(time.Minute))
		s.Refused(refusal(ci.Previews.Extend(ctx, p.DatabaseID, wire.ExtendPreview{TTLHours: 2})), "PREVIEW_LEASE_ENDED")
		ci.awaitsDeletion(p.DatabaseID)
		s.ShutOut(loginOf(made))
	}},
}

// The choices that scenarios make.
const (
	daily  = database.Daily
	hourly = database.Schedule("hourly") // is none
)

// Pipeline is a customer's CI, with a key of a namespace of its own.
func (s *Stage) Pipeline(of *Customer) *Customer {
	s.Helper()
	key := must(s.Operator.NewCIKey(of.Account))(s)
	return &Customer{Client: s.Hosts[0](key.Text), Account: of.Account, Key: key, stage: s}
}

// loginOf is how the owner of a preview logs in.
func loginOf(p wire.CreatedPreview) Login {
	c := p.Connection
	return Login{Database: c.Database, Username: c.Username, Password: c.Password, From: Home}
}

// awaitsDeletion waits until a preview is deleted.
func (c *Customer) awaitsDeletion(of id.DatabaseID) (p wire.Preview) {
	c.stage.Helper()
	c.stage.Eventually("the preview is deleted", func() bool {
		p = must(c.Previews.Get(ctx, of))(c.stage)
		return p.LeaseStatus == "deleted"
	})
	return p
}

// ofPreviews are the routes that name a preview.
func (s *Stage) ofPreviews() (routes []Route) {
	s.Helper()
	for _, r := range s.Routes {
		if r.Preview && r.Target != "" {
			routes = append(routes, r)
		}
	}
	s.That(len(routes) >= 4, "only %d routes name a preview", len(routes))
	return routes
}
