package spec

import (
	"bytes"
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
)

var changingKeys = []Scenario{
	{Name: "a revoked key stops working at once, the other keys do not", Play: func(s *Stage) {
		ada := s.Customer("pro")
		second := s.WithKey(ada.Account)
		s.OK(s.Operator.RevokeKey(ada.Key))
		for _, host := range s.Hosts {
			s.Refused(refusal(host(ada.Key.Text).Databases.List().Page(ctx, apiclient.Page{})), "UNAUTHORIZED")
		}
		second.SeesAll()
	}},
	{Name: "a replaced key has a new text and the same scope", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		selected := s.WithKey(ada.Account, one.ID)
		replaced := must(s.Operator.ReplaceKey(selected.Key))(s)

		s.Refused(refusal(selected.Databases.List().Page(ctx, apiclient.Page{})), "UNAUTHORIZED")
		fresh := &Customer{Client: s.Hosts[0](replaced.Text), Account: ada.Account, Key: replaced, stage: s}
		fresh.Sees(one.ID)
		s.Refused(refusal(fresh.Databases.Get(ctx, other.ID)), "DATABASE_NOT_FOUND")
	}},
	{Name: "an expired key is a key that does not exist, and can be given another end", Play: func(s *Stage) {
		ada := s.Customer("pro")
		list := Request{Method: "GET", Path: "/api/v1/databases", Key: ada.Key.Text}
		s.That(s.sends(list).Status == 200, "the key does not work")
		s.OK(s.Operator.SetKey(ada.Key, "100ms"))
		if s.Clock != nil {
			s.OK(s.Clock.Advance(100 * time.Millisecond))
		}
		answer := s.sends(list)
		for end := time.Now().Add(10 * time.Second); answer.Status == 200 && time.Now().Before(end); answer = s.sends(list) {
			time.Sleep(20 * time.Millisecond)
		}
		s.isUnknownKey(answer)
		s.OK(s.Operator.SetKey(ada.Key, "never"))
		ada.SeesAll()
	}},
	{Name: "a key outside its networks is a key that does not exist", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := func(key Key, from string) Answer {
			return s.sends(Request{Method: "GET", Path: "/api/v1/databases", Key: key.Text, From: from})
		}
		here, elsewhere := s.someAddress(), s.someAddress()
		s.OK(s.Operator.SetKey(ada.Key, "", "192.0.2.0/24", here))
		for _, from := range []string{here, "192.0.2.7", "::ffff:192.0.2.7"} {
			s.That(ask(ada.Key, from).Status == 200, "from %s it does not work", from)
		}
		s.isUnknownKey(ask(ada.Key, elsewhere))
		replaced := must(s.Operator.ReplaceKey(ada.Key))(s)
		s.That(ask(replaced, here).Status == 200, "replaced, it does not work where it did")
		s.isUnknownKey(ask(replaced, elsewhere))
		s.OK(s.Operator.SetKey(replaced, "", "any"))
		s.That(ask(replaced, elsewhere).Status == 200, "it still has networks")
	}},
}

// isUnknownKey compares an answer with the one to a key that was never made.
func (s *Stage) isUnknownKey(got Answer) {
	s.Helper()
	want := s.sends(Request{Method: "GET", Path: "/api/v1/databases", Key: "pgh_nobodys0", From: s.someAddress()})
	got.Header.Del("Date")
	got.Header.Del("X-Request-Id")
	same := got.Status == 401 && want.Status == 401 && bytes.Equal(got.Body, want.Body)
	for name, values := range got.Header {
		same = same && slices.Equal(values, want.Header[name])
	}
	s.That(same, "got %d %v %s; an unknown key gets %d %v %s", got.Status, got.Header, got.Body, want.Status, want.Header, want.Body)
}
