package mail

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

var began = time.Date(2026, time.November, 22, 9, 0, 0, 0, time.UTC)

func pending() Mail {
	return New("m", Letter{
		Kind:      ToInvite,
		Recipient: "bob@example.org", Inviter: "Ada", Database: "Shop", Role: account.Viewer, ExpiresAt: began.Add(7 * 24 * time.Hour),
	}, []byte("sealed"), began)
}

// Whatever happens, the token is there exactly until the mail is final, and only a claim takes a lease.
func TestTokenIsThereUntilTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, now := pending(), began
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "hours")) * time.Hour)
			before := m
			var err error
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if m.Claimable(now) {
					m = m.Claimed("d", now, Hold)
				}
			case 1:
				if m.Status == Sending {
					m, err = m.Settle(Outcome{
						Error: "later", Permanent: rapid.Bool().Draw(t, "permanent"), Doubtful: rapid.Bool().Draw(t, "doubtful"),
					}, now)
				}
			case 2:
				if m.Status == Sending && rapid.IntRange(0, 9).Draw(t, "luck") == 0 {
					m, err = m.Settle(Outcome{}, now)
				}
			case 3:
				if rapid.IntRange(0, 9).Draw(t, "ends") == 0 {
					m, err = m.Withdrawn(now)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Status.Final() != (m.SealedToken == nil) || m.Status.Final() != (m.FinishedAt != nil) {
				t.Fatalf("%+v", m)
			}
			if (m.Status == Sending) != (m.Until != nil) || m.Epoch < before.Epoch || m.Attempts > MaxAttempts {
				t.Fatalf("%+v", m)
			}
			if before.Status.Final() && m.Status != before.Status {
				t.Fatalf("%s became %s", before.Status, m.Status)
			}
		}
	})
}

func TestScheduleEnds(t *testing.T) {
	m, now := pending(), began
	for attempt := 1; attempt <= MaxAttempts; attempt++ {
		if !m.Claimable(now) {
			t.Fatalf("attempt %d is not due", attempt)
		}
		var err error
		if m, err = m.Claimed("d", now, Hold).Settle(Outcome{Error: "the server is down"}, now); err != nil {
			t.Fatal(err)
		}
		if want := attempt == MaxAttempts; (m.Status == Failed) != want {
			t.Fatalf("after %d attempts it is %s", attempt, m.Status)
		}
		if m.Status == Pending && m.Claimable(m.NotBefore.Add(-1)) {
			t.Error("it is due before its time")
		}
		now = m.NotBefore
	}
	if took := now.Sub(began); took < 3*24*time.Hour || took > 5*24*time.Hour {
		t.Errorf("it was given up after %s", took)
	}
	if _, left := Delay(0); left {
		t.Error("a mail without failures waits")
	}
}

func TestDoubtfulRefusalsAreBelievedLater(t *testing.T) {
	m, now, refused := pending(), began, Outcome{Error: "refused", Doubtful: true}
	for attempt := 1; m.Status == Pending; attempt++ {
		var err error
		if m, err = m.Claimed("d", now, Hold).Settle(refused, now); err != nil {
			t.Fatal(err)
		}
		if (attempt == MaxDoubtful) != (m.Status == Failed) {
			t.Fatalf("after %d attempts it is %s", attempt, m.Status)
		}
		now = m.NotBefore
	}
	if took := m.FinishedAt.Sub(began); took != 23*time.Minute {
		t.Errorf("it was given up after %s", took)
	}
	m = pending()
	m.Attempts = MaxDoubtful
	if m, err := m.Claimed("d", began, Hold).Settle(Outcome{Error: "the server is down"}, began); err != nil || m.Status != Pending {
		t.Errorf("a failure of the server: %s, %v", m.Status, err)
	}
}

func TestGivenUpAtOnce(t *testing.T) {
	for what, v := range map[string]struct {
		o   Outcome
		now time.Time
	}{
		"refused for good":       {Outcome{Error: "no such address", Permanent: true}, began},
		"the next is too late":   {Outcome{Error: "later"}, began.Add(7*24*time.Hour - time.Minute)},
		"the invitation is over": {Outcome{Error: "expired", Permanent: true}, began.Add(8 * 24 * time.Hour)},
	} {
		m, err := pending().Claimed("d", v.now, Hold).Settle(v.o, v.now)
		if err != nil || m.Status != Failed || m.Owner != "" {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
}

func TestLeaseFences(t *testing.T) {
	m := pending().Claimed("d", began, Hold)
	if m.Claimable(m.Until.Add(-1)) || !m.Claimable(*m.Until) || !m.UnderLease(began) || m.UnderLease(*m.Until) {
		t.Error("a lease does not last as long as it is held")
	}
	if Hold <= Timeout {
		t.Error("an attempt may take longer than its lease")
	}
	withdrawn, err := m.Withdrawn(began)
	if err != nil || withdrawn.Epoch != m.Epoch+1 {
		t.Errorf("an attempt that runs keeps its lease when the mail is withdrawn: %+v, %v", withdrawn, err)
	}
}

func TestBounds(t *testing.T) {
	for _, good := range []Recent{{}, {ToRecipient: MaxRecipient - 1, OfAccount: MaxAccount - 1}} {
		if err := good.Admit(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []Recent{{ToRecipient: MaxRecipient}, {OfAccount: MaxAccount}} {
		if err := bad.Admit(); !fault.Has(err, fault.RateLimited) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestTable(t *testing.T) { machinetest.Complete(t, Transitions, Statuses, Events) }
