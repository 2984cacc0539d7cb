package spec

import (
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

var using = []Scenario{
	{Name: "what a database uses comes by hour, with what is billed by", Play: func(s *Stage) {
		ada, made := s.Owner()
		bob := ada.member(made, "viewer")
		ada.FinishesBackup(made.ID)
		s.uses(ada, made.ID, func(u wire.Usage) bool {
			return u.Total.DatabaseHours > 0 && u.Total.ByteHours > 0 && u.Total.BackupByteHours > 0
		})
		u := bob.ReadsUsage(made.ID, "", "")
		s.That(u.QuotaBytes == ada.Sees(made.ID).Storage.QuotaBytes && *u.ConnectionCap == 60, "it is %+v", u)
		s.That(u.To.Sub(u.From) >= 30*day && u.To.Sub(u.From) < 30*day+time.Hour, "it is from %s to %s", u.From, u.To)
		var last wire.UsageSample
		for _, sample := range u.Samples {
			s.That(sample.At.Equal(sample.At.Truncate(time.Hour)) && sample.At.After(last.At), "%s after %s", sample.At, last.At)
			s.That(sample.SeenSeconds <= 3600 && *sample.Connections.Cap == 60, "an hour has %+v", sample)
			last = sample
		}
		at := last.At.Format(time.RFC3339)
		one := ada.ReadsUsage(made.ID, at, last.At.Add(time.Hour).Format(time.RFC3339))
		s.That(len(one.Samples) == 1 && one.Samples[0].At.Equal(last.At), "of that hour there are %+v", one.Samples)
		none := ada.ReadsUsage(made.ID, "2020-01-01", "2020-02-01")
		s.That(len(none.Samples) == 0 && none.Total == wire.UsageTotal{}, "of a time before it was made there is %+v", none)
	}},
	{Name: "queries and connections through both entries count", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		through := made.Login()
		held := must(s.SQL.Talk(through))(s)
		defer held.Close()
		must(held.Say("SELECT 1"))(s)
		s.uses(ada, made.ID, func(u wire.Usage) bool { return u.Total.ConnectionHours > 0 }) // it is looked at
		through.Database += ".transaction"
		for range 20 {
			must(s.SQL.Run(through, "SELECT 1"))(s)
			must(held.Say("SELECT 1"))(s)
		}
		s.uses(ada, made.ID, func(u wire.Usage) bool {
			queries, peak := int64(0), 0
			for _, sample := range u.Samples {
				queries, peak = queries+sample.Queries, max(peak, sample.Connections.Active.Peak)
			}
			return queries >= 40 && peak >= 1
		})
	}},
	{Name: "a period of usage has an end after its beginning, and not too far", Play: func(s *Stage) {
		ada, made := s.Owner()
		for _, query := range []string{
			"from=yesterday", "to=", "from=2026-11-02&to=2026-11-01", "from=2026-01-01&to=2026-03-01",
			"from=2026-11-01&from=2026-11-02",
		} {
			answer := s.sends(Request{Method: "GET", Path: made.path("/usage?" + query), Key: ada.Key.Text})
			s.Refused(answer.refusal(), "VALIDATION_ERROR")
		}
	}},
}

// uses has the service look at what databases use, until it is as wanted.
func (s *Stage) uses(c *Customer, of id.DatabaseID, wanted func(wire.Usage) bool) {
	s.Helper()
	s.Eventually("what it uses is seen", func() bool {
		s.OK(s.AskUsage())
		return wanted(c.ReadsUsage(of, "", ""))
	})
}

// ReadsUsage reads what a database used in a period; empty: in the last 30 days.
func (c *Customer) ReadsUsage(of id.DatabaseID, from, to string) wire.Usage {
	c.stage.Helper()
	return must(c.Usage.Get(ctx, of, from, to))(c.stage)
}
