package spec

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
}
