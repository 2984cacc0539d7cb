package spec

import (
	"errors"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/id"
)

var limiting = []Scenario{
	{Name: "a key that writes too much waits, on every host; other keys and reading go on", Play: func(s *Stage) {
		ada, made := s.Owner()
		refused := s.writesUntilRefused(ada, made.ID)
		s.That(refused.RetryAfter > 0 && refused.RetryAfter <= time.Minute, "it may come back after %s", refused.RetryAfter)

		s.Refused(refusal(s.Hosts[1](ada.Key.Text).SetEnvironment(made.ID, nil)), "RATE_LIMITED")
		ada.Sees(made.ID)
		must(s.WithKey(ada.Account).SetEnvironment(made.ID, nil))(s)

		s.Pass(refused.RetryAfter + time.Second)
		must(ada.SetEnvironment(made.ID, nil))(s)
	}},
}

// writesUntilRefused spends what the key may write, on all hosts in turn. The bucket refills meanwhile, so a few more requests
// than the limit can get through.
func (s *Stage) writesUntilRefused(c *Customer, of id.DatabaseID) *apiclient.Error {
	s.Helper()
	for n := range 2 * s.Writes {
		_, err := s.Hosts[n%len(s.Hosts)](c.Key.Text).SetEnvironment(of, nil)
		var r *apiclient.Error
		if errors.As(err, &r) {
			s.That(n >= s.Writes, "it is refused after %d requests; the limit is %d", n, s.Writes)
			return s.Refused(err, "RATE_LIMITED")
		}
		s.OK(err)
	}
	s.Fatalf("%d requests got through; the limit is %d", 2*s.Writes, s.Writes)
	return nil
}
