package spec

import (
	"bytes"
	"encoding/csv"
	"strings"
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
			"from=2026-11-01&from=2026-11-02", "resolution=weekly", "resolution=daily&from=2024-01-01&to=2026-01-01",
		} {
			answer := s.sends(Request{Method: "GET", Path: made.path("/usage?" + query), Key: ada.Key.Text})
			s.Refused(answer.refusal(), "VALIDATION_ERROR")
		}
	}},
	{Name: "what a database uses comes by days and months, and as CSV", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.uses(ada, made.ID, func(u wire.Usage) bool { return u.Total.DatabaseHours > 0 })
		for _, by := range []string{"daily", "monthly"} {
			u := must(ada.Usage.Get(ctx, made.ID, "", "", by))(s)
			s.That(string(u.Resolution) == by && len(u.Samples) > 0, "%s, it is %+v", by, u)
			for _, sample := range u.Samples {
				at := sample.At
				s.That(at.Equal(at.Truncate(day)) && (by == "daily" || at.Day() == 1), "a part of it is %+v", sample)
			}
		}
		table := ada.readsTable(made.path("/usage"))
		s.That(len(table) > 1 && len(table[0]) == len(table[1]) && table[0][0] == "at", "the table is %q", table)
	}},
	{Name: "an account has a bill of its databases, which adds up", Play: func(s *Stage) {
		ada, made := s.Owner()
		blog := ada.Creates("blog")
		bob := s.Customer("pro")
		for _, db := range []id.DatabaseID{made.ID, blog.ID} {
			s.uses(ada, db, func(u wire.Usage) bool { return u.Total.DatabaseHours > 0 })
		}
		ofMonth, ofDays := ada.readsBill("monthly"), ada.readsBill("daily")
		s.That(len(ofMonth) == 2 && len(ofDays) == 2, "the bill is %+v", ofMonth)
		for i, d := range ofDays {
			var bytes int64
			for _, p := range d.Parts {
				bytes += p.ByteHours
			}
			s.That(d.DatabaseID == ofMonth[i].DatabaseID && bytes == d.Total.ByteHours && d.Total.DatabaseHours > 0,
				"the days of %+v come to %d byte hours", d, bytes)
		}
		s.That(len(bob.readsBill("monthly")) == 0, "another account sees %+v", bob.readsBill("monthly"))
		one := s.WithKey(ada.Account, blog.ID).readsBill("hourly")
		s.That(len(one) == 1 && one[0].DatabaseID == blog.ID && one[0].DatabaseName == blog.Name, "a key of one database sees %+v", one)

		first := ada.sendsFor("/api/v1/usage?limit=1", "text/csv")
		link := strings.TrimSuffix(strings.TrimPrefix(first.Header.Get("Link"), "<"), `>; rel="next"`)
		rows, rest := tableOf(s, first), ada.readsTable(link)
		s.That(len(rows) == 2 && len(rest) == 2 && rows[1][1] < rest[1][1], "the table is %q, and then %q", rows, rest)
		s.Refused(ada.sendsFor("/api/v1/usage?month=11", "text/csv").refusal(), "VALIDATION_ERROR")
	}},
}

// readsBill reads what the account of a customer comes to this month.
func (c *Customer) readsBill(by string) (list []wire.DatabaseUsage) {
	c.stage.Helper()
	for d, err := range c.Usage.List("", by).All(ctx) {
		c.stage.OK(err)
		list = append(list, d)
	}
	return list
}

func (c *Customer) sendsFor(path, kind string) Answer {
	c.stage.Helper()
	return c.stage.sends(Request{Method: "GET", Path: path, Key: c.Key.Text, Header: map[string]string{"Accept": kind}})
}

// readsTable reads the CSV of a path.
func (c *Customer) readsTable(path string) [][]string {
	c.stage.Helper()
	return tableOf(c.stage, c.sendsFor(path, "text/csv"))
}

func tableOf(s *Stage, a Answer) [][]string {
	s.Helper()
	s.That(a.Status == 200 && strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv"), "the answer is %d %v", a.Status, a.Header)
	return must(csv.NewReader(bytes.NewReader(a.Body)).ReadAll())(s)
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
	return must(c.Usage.Get(ctx, of, from, to, ""))(c.stage)
}
