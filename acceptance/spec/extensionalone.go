package spec

import (
	"encoding/json"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/fakes/inbox"
)

// extendingAlone changes something for everybody.
var extendingAlone = []Scenario{
	{Name: "reading an operation brings it to its end, though no batch host runs", Alone: true, Play: func(s *Stage) {
		ada, made := s.Extender()
		s.stopsBatch()
		queued := must(ada.ChangeExtension(made.ID, "citext", "install", "deploy-1"))(s)
		s.That(queued.Status == "queued", "it began as %+v", queued)
		s.That(must(ada.Operations.Get(ctx, queued.ID))(s).Status == "queued", "another route has begun it")
		s.unavailable(ada, made, "pgcrypto", "install")
		s.That(ada.FollowsExtension(made, queued).Status == "succeeded", "it failed")
	}},
	{Name: "a queued installation is canceled at once, and its key stays used", Alone: true, Play: func(s *Stage) {
		ada, made := s.Extender()
		s.stopsBatch()
		queued := must(ada.ChangeExtension(made.ID, "citext", "install", "deploy-1"))(s)
		must(ada.Operations.Cancel(ctx, queued.ID))(s)
		again := must(ada.ChangeExtension(made.ID, "citext", "install", "deploy-1"))(s)
		s.That(again.ID == queued.ID && again.Status == "canceled", "it is %+v", again)
		s.OK(s.Batch.Start())
		s.That(ada.SeesExtension(made, "citext").InstalledVersion == nil, "it is installed")
		ada.Installs(made, "citext")
	}},
	{Name: "without the agent there is no catalog and no change, and what was done is shown", Alone: true, Play: func(s *Stage) {
		ada, made := s.Extender()
		done := ada.Extends(made, "citext", "install", "deploy-1")
		s.losesAgent()
		s.Refused(refusal(ada.Extensions.List(ctx, made.ID)), "AGENT_ERROR")
		_, err := ada.ChangeExtension(made.ID, "pgcrypto", "install", "deploy-2")
		s.Refused(err, "AGENT_ERROR")
		s.That(ada.ReadsExtension(made, done.ID).Status == "succeeded", "it is not shown")
		again := must(ada.ChangeExtension(made.ID, "citext", "install", "deploy-1"))(s)
		s.That(again.ID == done.ID, "it is %+v", again)
	}},
	{Name: "while the feature is off, no route of extensions is available", Alone: true, Play: func(s *Stage) {
		ada, made := s.Extender()
		done := ada.Installs(made, "citext")
		s.OK(s.Operator.SetFeature("extension-catalog", false))
		s.finally(func() error { return s.Operator.SetFeature("extension-catalog", true) })
		s.eachExtensionRoute(ada, made, done, func(a Answer) { s.Refused(a.refusal(), "FEATURE_NOT_AVAILABLE") })
	}},
	{Name: "in a maintenance window the routes of extensions answer in a shape of their own", Alone: true, Play: func(s *Stage) {
		ada, made := s.Extender()
		done := ada.Installs(made, "citext")
		s.OK(s.Operator.SetMaintenance(true))
		s.finally(func() error { return s.Operator.SetMaintenance(false) })
		s.eachExtensionRoute(ada, made, done, func(a Answer) {
			var bare map[string]string
			s.OK(json.Unmarshal(a.Body, &bare))
			s.That(a.Status == 503 && len(bare) == 2 && bare["error"] == "MAINTENANCE" && bare["message"] != "", "%d %s", a.Status, a.Body)
		})
	}},
	{Name: "each end of an operation on an extension is one event", Alone: true, Needs: []Ability{HasReceivers},
		Play: func(s *Stage) {
			ada, made := s.Extender()
			hook := ada.Hooks(s.receiver(), made.ID)
			s.OK(s.OnServer.BlockExtension(made, true))
			ada.Extends(made, "citext", "install", "1")
			s.isExtensionEvent(s.Hears(hook, 1)[0], "failed")
			s.OK(s.OnServer.BlockExtension(made, false))
			ada.Installs(made, "citext")
			s.isExtensionEvent(s.Hears(hook, 2)[1], "succeeded")
			s.stopsBatch()
			must(ada.Operations.Cancel(ctx, must(ada.ChangeExtension(made.ID, "pgcrypto", "install", "3"))(s).ID))(s)
			s.OK(s.Batch.Start())
			s.isExtensionEvent(s.Hears(hook, 3)[2], "canceled")
		}},
}

// eachExtensionRoute sends a good request to every route of extensions.
func (s *Stage) eachExtensionRoute(c *Customer, made Created, done wire.ExtensionOperation, check func(Answer)) {
	s.Helper()
	header := map[string]string{"Content-Type": "application/json", "Idempotency-Key": s.Name("key")}
	for _, r := range []Request{
		{Method: "GET", Path: made.path("/extensions")},
		{Method: "POST", Path: made.path("/extensions/operations"), Header: header,
			Body: []byte(`{"extension":"pgcrypto","kind":"install"}`)},
		{Method: "GET", Path: made.path("/extensions/operations/" + string(done.ID))},
	} {
		r.Key, r.From = c.Key.Text, s.someAddress()
		answer := s.sends(r)
		s.That(answer.Header.Get("Cache-Control") == "no-store", "%s %s may be stored", r.Method, r.Path)
		check(answer)
	}
}

func (s *Stage) isExtensionEvent(got inbox.Request, status string) {
	s.Helper()
	e := s.reads(got)
	named := string(e.Event) == "extension."+status && string(e.Data.Status) == status
	s.That(named && (e.Data.Error != nil) == (status == "failed"), "%s", got.Body)
}
