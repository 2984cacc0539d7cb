package spec

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
)

// windowing is about the moments as of which a database can be had back.
var windowing = []Scenario{
	{Name: "whoever sees a database sees as of which seconds it can be had back, and what is missing",
		Needs: []Ability{Archives}, Alone: true, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Connects(made.Login()).Write("kept"))
			s.hasWindow(ada, made)
			from, to := s.losesSegments()
			for _, c := range []*Customer{
				ada, s.WithKey(ada.Account, made.ID), ada.member(made, account.Viewer), ada.member(made, account.Developer),
			} {
				w := s.hasWindow(c, made)
				s.That(w.Archived && w.PlanDays == 3 && len(w.Gaps) == 1 && w.Gaps[0].Reason == "segments_missing" &&
					!w.Gaps[0].From.After(from) && !w.Gaps[0].To.Before(to), "it is %+v", w)
				s.That(!w.From.After(w.Gaps[0].From) && !w.Gaps[0].To.After(*w.To), "it is %+v", w)
			}
			s.Refused(refusal(s.Customer("pro").Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
		}},
	{Name: "without an archive, or on a plan without recovery, nothing can be had back, and a client sees why",
		Needs: []Ability{Archives}, Alone: true, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Operator.SetPITR(ada.Account, 0))
			w := must(ada.Recovery.GetWindow(ctx, made.ID))(s)
			s.That(w.From == nil && w.To == nil && len(w.Gaps) == 0 && w.Archived && w.PlanDays == 0, "it is %+v", w)
			s.OK(s.Operator.SetPITR(ada.Account, 5))
			s.OK(s.Archive.Keep(false))
			s.finally(func() error { return s.Archive.Keep(true) })
			w = must(ada.Recovery.GetWindow(ctx, made.ID))(s)
			s.That(w.From == nil && w.To == nil && len(w.Gaps) == 0 && !w.Archived && w.PlanDays == 5, "it is %+v", w)
		}},
	{Name: "a second that was had back is shown with the window, and has a certificate",
		Needs: []Ability{Archives}, Alone: true, Play: proven},
	{Name: "no window reaches further back than the plan", Needs: []Ability{Archives, MovesTime}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Clock.Advance(4 * 24 * time.Hour))
		w := s.hasWindow(ada, made)
		s.That(!s.Clock.Now().AddDate(0, 0, -3).After(*w.From) && w.To.Sub(*w.From) <= 3*24*time.Hour, "it is %+v", w)
	}},
	{Name: "a deleted database can be had back up to its deletion, as long as it can be recovered",
		Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
			ada, made := s.Deletable()
			selected := s.WithKey(ada.Account, made.ID)
			s.hasWindow(ada, made)
			s.Pass(2 * time.Second)
			ada.Drops(made)
			s.Pass(2 * time.Second)
			w := s.hasWindow(ada, made)
			s.That(!w.To.After(ada.seesTombstones()[0].DeletedAt), "it is %+v", w)
			s.Refused(refusal(selected.Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
			s.Refused(refusal(s.Customer("pro").Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
			if s.Clock != nil {
				s.OK(s.Clock.Advance(7 * 24 * time.Hour))
				s.Eventually("it is purged", func() bool { return len(ada.seesTombstones()) == 0 })
				s.Refused(refusal(ada.Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
			}
		}},
	{Name: "without the agent nobody is told what can be had back", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		s.Refused(refusal(ada.Recovery.GetWindow(ctx, made.ID)), "AGENT_ERROR")
	}},
	{Name: "an agent that is too old says nothing of moments", Needs: []Ability{AgesAgents}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OldAgent(true)
		s.Refused(refusal(ada.Recovery.GetWindow(ctx, made.ID)), "AGENT_ROUTE_UNAVAILABLE")
		s.OldAgent(false)
	}},
}

// cloningThen are clones of what a database held at a moment.
var cloningThen = []Scenario{
	{Name: "a clone of a moment has what its source had then, and nothing that came after", Both: true,
		Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
			ada, made := s.Clonable()
			session := s.Connects(made.Login())
			s.OK(session.Write("kept"))
			s.hasWindow(ada, made)
			at := s.moment()
			s.OK(session.Write("later"))
			asked := must(ada.Clone(made, NewClone{Name: s.Name("copy"), At: &at}))(s)
			copied := Created{CreatedDatabase: asked.Database}
			done := ada.Follows(asked.Operation)
			s.That(done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
			s.That(strings.Contains(string(*done.Result), `"pointInTime":"`), "its result is %s", *done.Result)
			s.That(len(ada.ListsBackups(made.ID)) == 0, "a backup is listed")
			s.hasNotes(ada, copied, "kept")
			s.OK(s.Connects(copied.Login()).Write("more"))
			s.That(session.Alive(), "a session of the source was ended")
			s.hasNotes(ada, made, "kept", "later")
			wrote := s.only(ada.ReadsActivity(made.ID), "clone.requested").Details["pointInTime"]
			s.That(must(time.Parse(time.RFC3339, wrote))(s).Equal(must(time.Parse(time.RFC3339, at))(s)), "the log has %s", wrote)
		}},
	{Name: "a deleted database is cloned as it was, with a full-account key, until it is purged",
		Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
			ada, made := s.Deletable()
			s.OK(s.Operator.Enroll(made.ID, "clone"))
			s.OK(s.Connects(made.Login()).Write("kept"))
			s.hasWindow(ada, made)
			at := s.moment()
			s.OK(s.Connects(made.Login()).Write("later"))
			ada.Drops(made)
			s.Refused(refusal(ada.Clone(made, NewClone{Name: s.Name("copy")})), "DATABASE_NOT_FOUND")
			copied := ada.Clones(made, NewClone{Name: s.Name("copy"), At: &at})
			s.hasNotes(ada, copied, "kept")
			after := s.moment()
			s.Refused(refusal(ada.Clone(made, NewClone{Name: s.Name("copy"), At: &after})), "POINT_NOT_RECOVERABLE")
			s.Refused(refusal(s.Customer("pro").Clone(made, NewClone{Name: s.Name("copy"), At: &at})), "DATABASE_NOT_FOUND")
			ada.Recovers(made)
			s.hasNotes(ada, made, "kept", "later")
		}},
	{Name: "no clone is made of a moment that cannot be had back", Alone: true, Needs: []Ability{Archives}, Play: func(s *Stage) {
		ada, made := s.Clonable()
		w := s.hasWindow(ada, made)
		from, to := s.losesSegments()
		text := func(at time.Time) *string { return new(at.Format(time.RFC3339Nano)) }
		ask := func(at *string) error { return refusal(ada.Clone(made, NewClone{Name: s.Name("copy"), At: at})) }
		s.Refused(ask(text(w.From.Add(-time.Second))), "POINT_NOT_RECOVERABLE")
		s.Refused(ask(text(made.CreatedAt.Add(-time.Hour))), "POINT_NOT_RECOVERABLE")
		s.Refused(ask(new("0001-01-01T00:00:00Z")), "POINT_NOT_RECOVERABLE")
		s.Refused(ask(text(from.Add(to.Sub(from)/2))), "POINT_NOT_RECOVERABLE")
		s.Refused(ask(text(s.now().Add(time.Hour))), "VALIDATION_ERROR", "pointInTime")
		at := text(s.now().Add(-time.Second))
		s.OK(s.Operator.SetPITR(ada.Account, 0))
		s.Refused(ask(at), "PLAN_LIMIT")
		s.OK(s.Operator.SetPITR(ada.Account, 3))
		s.OK(s.Archive.Keep(false))
		s.finally(func() error { return s.Archive.Keep(true) })
		s.Refused(ask(at), "FEATURE_NOT_AVAILABLE")
		s.That(len(ada.SeesAll()) == 1, "a refused clone had an effect")
	}},
	{Name: "a moment is a time with its offset, and nothing is given beside it", Play: func(s *Stage) {
		ada, made := s.Clonable()
		file := backup.Filename("20260301_113000.sql.gz")
		for _, at := range []string{"", "2026-03-01T11:30:00", "2026-03-01 11:30:00Z", "2026-03-01T11:30:00+25:00"} {
			s.Refused(refusal(ada.Clone(made, NewClone{Name: s.Name("copy"), At: &at})), "VALIDATION_ERROR", "pointInTime")
		}
		at := s.now().Format(time.RFC3339)
		s.Refused(refusal(ada.Clone(made, NewClone{Name: s.Name("copy"), At: &at, Filename: &file})), "VALIDATION_ERROR", "pointInTime")
		ask := NewClone{Name: s.Name("copy"), At: &at}
		s.Refused(refusal(s.Customer("pro").Clone(made, ask)), "DATABASE_NOT_FOUND")
		s.Refused(refusal(s.WithKey(ada.Account, made.ID).Clone(made, ask)), "KEY_SCOPE_DENIED")
		s.That(len(ada.SeesAll()) == 1, "a refused clone had an effect")
	}},
}

// restoringThen are managed restores as of a moment.
var restoringThen = []Scenario{
	{Name: "a managed restore as of a moment brings back what the database held then", Needs: []Ability{Archives, Restoring},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			session := s.Connects(made.Login())
			s.OK(session.Write("kept"))
			s.hasWindow(ada, made)
			at := s.moment()
			s.OK(session.Write("lost"))
			o := must(ada.ReserveThen(made.ID, at, "then-1"))(s).Operation
			s.That(o.Type == "restore" && o.Status == "queued", "it began as %+v", o)
			s.Eventually("it has succeeded", func() bool {
				s.Pass(time.Second) // a key may not ask more often all the time
				o = ada.Advances(o)
				return o.Status == "succeeded"
			})
			s.That(restoredTo(o, `{"pointInTime":"`, 2, 1), "its result is %s", *o.Result)
			s.Eventually("the session of before ends", session.Ended)
			s.That(len(ada.ListsBackups(made.ID)) == 0, "a backup is listed")
			s.hasNotes(ada, made, "kept")
			s.OK(s.Connects(made.Login()).Write("new"))
			wrote := s.only(ada.ReadsActivity(made.ID), "restore.requested").Details["pointInTime"]
			s.That(must(time.Parse(time.RFC3339, wrote))(s).Equal(must(time.Parse(time.RFC3339, at))(s)), "the log has %s", wrote)
			s.That(must(ada.ReserveThen(made.ID, at, "then-1"))(s).Operation.ID == o.ID, "the same request makes another one")

			s.hasWindow(ada, made)
			copied := ada.Clones(s.enrolled(made, "clone"), NewClone{Name: s.Name("copy"), At: &at})
			s.hasNotes(ada, copied, "kept")
		}},
	{Name: "a restore as of a moment can be canceled, and nothing has changed", Needs: []Ability{Archives, Restoring},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			session := s.Connects(made.Login())
			s.OK(session.Write("kept"))
			s.hasWindow(ada, made)
			at := s.moment()
			s.OK(session.Write("later"))
			for n, advances := range []int{0, 1, 3} {
				o := must(s.asking(ada).ReserveThen(made.ID, at, s.Name("key")))(s).Operation
				for range advances {
					o = ada.Advances(o)
				}
				must(ada.Operations.Cancel(ctx, o.ID))(s)
				s.Eventually("it is canceled", func() bool { return must(ada.Operations.Get(ctx, o.ID))(s).Status == "canceled" })
				s.That(session.Alive(), "attempt %d has ended a session", n)
			}
			s.hasNotes(ada, made, "kept", "later")
		}},
	{Name: "no restore is of a moment that cannot be had back", Alone: true, Needs: []Ability{Archives}, Play: func(s *Stage) {
		ada, made := s.Owner()
		w := s.hasWindow(ada, made)
		from, to := s.losesSegments()
		ask := func(at time.Time) error {
			return refusal(s.asking(ada).ReserveThen(made.ID, at.Format(time.RFC3339Nano), s.Name("key")))
		}
		s.Refused(ask(w.From.Add(-time.Second)), "POINT_NOT_RECOVERABLE")
		s.Refused(ask(from.Add(to.Sub(from)/2)), "POINT_NOT_RECOVERABLE")
		s.Refused(ask(s.now().Add(time.Hour)), "VALIDATION_ERROR", "pointInTime")
		s.OK(s.Operator.SetPITR(ada.Account, 0))
		s.Refused(ask(s.now()), "PLAN_LIMIT")
		s.OK(s.Operator.SetPITR(ada.Account, 3))
		s.OK(s.Archive.Keep(false))
		s.finally(func() error { return s.Archive.Keep(true) })
		s.Refused(ask(s.now()), "FEATURE_NOT_AVAILABLE")
		s.That(len(ada.ListsOperations(made.ID)) == 0, "they left operations")
	}},
	{Name: "a restore is from a backup or as of a moment with its offset, of the account's own database", Play: func(s *Stage) {
		ada, made := s.Owner()
		at := s.now().Format(time.RFC3339)
		for _, text := range []string{"", "2026-03-01T11:30:00", "2026-03-01 11:30:00+01"} {
			s.Refused(refusal(s.asking(ada).ReserveThen(made.ID, text, "then-1")), "VALIDATION_ERROR", "pointInTime")
		}
		both := wire.ReserveRestore{BackupFilename: "20260301_113000.sql.gz", PointInTime: &at}
		key := apiclient.IdempotencyKey("then-1")
		s.Refused(refusal(s.asking(ada).Restores.Reserve(ctx, made.ID, both, key)), "VALIDATION_ERROR", "pointInTime")
		neither := refusal(s.asking(ada).Restores.Reserve(ctx, made.ID, wire.ReserveRestore{}, key))
		s.Refused(neither, "VALIDATION_ERROR", "backupFilename")
		s.Refused(refusal(s.Customer("pro").ReserveThen(made.ID, at, "then-1")), "DATABASE_NOT_FOUND")
		s.Refused(refusal(s.WithKey(ada.Account, made.ID).ReserveThen(made.ID, at, "then-1")), "KEY_SCOPE_DENIED")
		s.That(len(ada.ListsOperations(made.ID)) == 0, "they left operations")
	}},
}

// copyingPreviews are previews with the data of another database.
var copyingPreviews = []Scenario{
	{Name: "a preview has what a database held at a moment, where the operator allows it, and no pipeline gets its password",
		Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
			ada, made := s.Clonable()
			ci, of := s.namespaced(ada)
			s.OK(s.Connects(made.Login()).Write("kept"))
			s.hasWindow(ada, made)
			at := s.moment()
			s.OK(s.Connects(made.Login()).Write("later"))
			ask := copyOf(of, made, "pull/17", at)
			s.Refused(refusal(ada.Previews.Create(ctx, ask)), "FEATURE_NOT_AVAILABLE")
			s.OK(s.Operator.SetPreviewCopies(ada.Account, true))
			begun := must(ada.Previews.Create(ctx, ask))(s)
			p, o := begun.Data, begun.Operation
			s.That(o != nil && o.Type == "clone" && o.DatabaseID == made.ID && p.LeaseStatus == "active" && p.Ref == "pull/17" &&
				*p.Source == made.ID && p.NamespaceID == *ask.NamespaceID && begun.Connection.Password != "", "it began as %+v", begun)
			done := ada.Follows(*o)
			s.That(done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
			again := must(ada.Previews.Create(ctx, ask))(s)
			s.That(again.Data.DatabaseID == p.DatabaseID && again.Operation == nil && again.Connection == begun.Connection,
				"the second answer is %+v", again)
			copied := Created{CreatedDatabase: wire.CreatedDatabase{Database: ada.Sees(p.DatabaseID)}}
			s.hasNotes(ada, copied, "kept")
			s.hasNotes(ada, made, "kept", "later")

			s.That(must(ci.Previews.Find(ctx, "pull/17"))(s).DatabaseID == p.DatabaseID, "the pipeline does not find it")
			plain := wire.CreatePreview{Ref: "pull/17"}
			s.Refused(refusal(ci.Previews.Create(ctx, plain)), "PREVIEW_CONFLICT")
			s.Refused(refusal(ci.Previews.Create(ctx, ask)), "KEY_SCOPE_DENIED")
			s.Refused(refusal(ada.Previews.Create(ctx, plain)), "KEY_SCOPE_DENIED")
			s.Refused(refusal(ada.Clone(s.enrolled(copied, "clone"), NewClone{Name: s.Name("copy")})), "PREVIEW_CONFLICT")
			must(ci.Previews.Extend(ctx, p.DatabaseID, wire.ExtendPreview{TTLHours: 72}))(s)
			must(ci.Previews.Delete(ctx, p.DatabaseID))(s)
			s.Eventually("it is deleted", func() bool {
				return must(ci.Previews.Get(ctx, p.DatabaseID))(s).LeaseStatus == "deleted"
			})
		}},
	{Name: "a copy that is canceled leaves no preview", Alone: true, Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
		ada, made := s.Clonable()
		ci, of := s.namespaced(ada)
		s.OK(s.Operator.SetPreviewCopies(ada.Account, true))
		s.OK(s.Connects(made.Login()).Write("kept"))
		s.hasWindow(ada, made)
		at := s.moment()
		s.stopsBatch()
		begun := must(ada.Previews.Create(ctx, copyOf(of, made, "main", at)))(s)
		must(ada.Operations.Cancel(ctx, begun.Operation.ID))(s)
		s.OK(s.Batch.Start())
		s.Eventually("it is gone", func() bool { return len(ada.SeesAll()) == 1 })
		s.Refused(refusal(ci.Previews.Find(ctx, "main")), "PREVIEW_NOT_FOUND")
		must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s)
	}},
	{Name: "no copy is made of what its caller may not have", Play: func(s *Stage) {
		ada, made := s.Owner()
		mallory := s.Customer("pro")
		ci, of := s.namespaced(ada)
		_, theirs := s.namespaced(mallory)
		s.OK(s.Operator.SetPreviewCopies(ada.Account, true))
		s.OK(s.Operator.SetPreviewCopies(mallory.Account, true))
		at := s.now().Format(time.RFC3339)
		ask := func(c *Customer, change func(*wire.CreatePreview)) error {
			b := copyOf(of, made, "main", at)
			change(&b)
			return refusal(c.Previews.Create(ctx, b))
		}
		same := func(*wire.CreatePreview) {}
		s.Refused(ask(ada, same), "FEATURE_NOT_AVAILABLE") // its database is not enrolled for clones
		s.OK(s.Operator.Enroll(made.ID, "clone"))
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.Source = nil }), "VALIDATION_ERROR", "source")
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.Source = new(id.DatabaseID("X")) }), "VALIDATION_ERROR", "source")
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.Source = new(id.DatabaseID(nobodysID)) }), "DATABASE_NOT_FOUND")
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.PointInTime = nil }), "VALIDATION_ERROR", "pointInTime")
		local := "2026-03-01T11:30:00"
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.PointInTime = &local }), "VALIDATION_ERROR", "pointInTime")
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.NamespaceID = nil }), "VALIDATION_ERROR", "namespaceId")
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.NamespaceID = &theirs }), "VALIDATION_ERROR", "namespaceId")
		s.Refused(ask(ada, func(b *wire.CreatePreview) { b.Ref = "" }), "VALIDATION_ERROR", "ref")
		s.Refused(ask(mallory, func(b *wire.CreatePreview) { b.NamespaceID = &theirs }), "DATABASE_NOT_FOUND")
		s.Refused(ask(ci, same), "KEY_SCOPE_DENIED")
		s.Refused(ask(s.WithKey(ada.Account, made.ID), same), "KEY_SCOPE_DENIED")
		s.OK(s.Operator.SetPITR(ada.Account, 0))
		s.Refused(ask(ada, same), "PLAN_LIMIT")
		s.That(len(ada.SeesAll()) == 1, "a refused copy had an effect")
	}},
}

// copyOf asks for the preview of a ref in a namespace with what a database held at a moment.
func copyOf(n id.NamespaceID, of Created, ref, at string) wire.CreatePreview {
	return wire.CreatePreview{Ref: ref, Source: &of.ID, PointInTime: &at, NamespaceID: &n}
}

// namespaced is a pipeline of a customer, and its namespace.
func (s *Stage) namespaced(of *Customer) (*Customer, id.NamespaceID) {
	s.Helper()
	n := must(s.Operator.NewNamespace(of.Account))(s)
	key := must(s.Operator.NewCIKeyOf(n))(s)
	return &Customer{Client: s.Hosts[0](key.Text), Account: of.Account, Key: key, stage: s}, n
}

// ReserveThen reserves a managed restore as of a moment.
func (c Client) ReserveThen(of id.DatabaseID, at, key string) (wire.OperationWithMessage, error) {
	return c.Restores.Reserve(ctx, of, wire.ReserveRestore{PointInTime: &at}, apiclient.IdempotencyKey(key))
}

// enrolled is a database that is enrolled for a route.
func (s *Stage) enrolled(of Created, route string) Created {
	s.Helper()
	s.OK(s.Operator.Enroll(of.ID, route))
	return of
}

// moment is a time with an offset of its own, apart from whatever is written before it and after it.
func (s *Stage) moment() string {
	s.Pass(1100 * time.Millisecond)
	at := s.now()
	s.Pass(1100 * time.Millisecond)
	return at.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
}

// hasWindow waits until something of a database can be had back, and returns what.
func (s *Stage) hasWindow(c *Customer, of Created) (w wire.RecoveryWindow) {
	s.Helper()
	s.Eventually("something can be had back", func() bool {
		w = must(c.Recovery.GetWindow(ctx, of.ID))(s)
		return w.From != nil
	})
	s.That(w.To != nil && !w.To.Before(*w.From), "it is %+v", w)
	return w
}

// proven is the story of a drill.
func proven(s *Stage) {
	ada, made := s.Owner()
	s.OK(s.Connects(made.Login()).Write("first", "second"))
	s.hasWindow(ada, made)
	s.Pass(1100 * time.Millisecond)
	at := s.now().UTC().Truncate(time.Microsecond)
	s.Pass(1100 * time.Millisecond)
	s.OK(s.Connects(made.Login()).Write("third"))
	s.Refused(refusal(ada.Recovery.GetCertificate(ctx, made.ID)), "CERTIFICATE_NOT_FOUND")
	s.drills(made, at)
	var w wire.RecoveryWindow
	s.Eventually("the drill is over", func() bool {
		w = must(ada.Recovery.GetWindow(ctx, made.ID))(s)
		return w.LastDrill != nil && w.LastDrill.Scope == wire.DrillOfDatabase
	})
	last := w.LastDrill
	s.That(last.Outcome == "proven" && last.PointInTime.Equal(at) && !last.RanAt.Before(at) && last.Seconds > 0 &&
		w.ProvenFrom != nil && !w.ProvenFrom.After(at), "it is %+v, %+v", w, last)
	c := must(ada.Recovery.GetCertificate(ctx, made.ID))(s)
	s.That(s.signed(c, s.certificateKeys()), "its signature is not that of the key %s: %s", c.KeyID, c.Document)
	var d certificate.Recovery
	s.OK(json.Unmarshal(c.Document, &d))
	s.That(d.Format == "pgherd-recovery-certificate/1" && d.KeyID == c.KeyID && d.DatabaseID == made.ID && d.Database == made.Name &&
		d.PointInTime.Equal(at) && !d.ReplayedTo.After(at) && d.Contents.Rows == 2 && len(d.Contents.Digest) == 64,
		"it says %s", c.Document)
	s.Refused(refusal(s.Customer("pro").Recovery.GetCertificate(ctx, made.ID)), "DATABASE_NOT_FOUND")
}

// drills orders a drill, once no other one of the server goes on.
func (s *Stage) drills(of Created, at time.Time) {
	s.Helper()
	s.Eventually("no other drill goes on", func() bool {
		err := s.Operator.RunDrill(of.ID, at)
		if err != nil && strings.Contains(err.Error(), "a drill of the server goes on") {
			return false
		}
		s.OK(err)
		return true
	})
}

// losesSegments has the archive lose what is written between two whole seconds from now on, and waits until after that.
func (s *Stage) losesSegments() (from, to time.Time) {
	s.Helper()
	s.Pass(2 * time.Second)
	from = s.now().Truncate(time.Second)
	to = from.Add(2 * time.Second)
	s.OK(s.Archive.Lose(from, to))
	s.Pass(4 * time.Second)
	return from, to
}

// now is the time that the service goes by.
func (s *Stage) now() time.Time {
	if s.Clock != nil {
		return s.Clock.Now()
	}
	return time.Now().Truncate(time.Microsecond) // as the service writes it
}
